//! The flag, and the collector in two steps: found before files are given up, told of requests by a
//! thread that is started after it.

use anyhow::{Context, Result};
use clap::Args;
use motley_server::Telemetry;
use motley_server::telemetry::Collector;

/// Who is told where the time of requests goes.
#[derive(Debug, Args)]
pub(crate) struct OtlpArgs {
    /// Send traces of requests to the OpenTelemetry collector at URL, such as
    /// http://127.0.0.1:4318 (OTLP over HTTP): times and counts, never prompts or answers
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

/// Who is told, if anybody.
pub(crate) struct Destination(Option<Collector>);

impl OtlpArgs {
    /// Finds the collector, while names can be looked up and certificates be read.
    pub(crate) fn find(&self) -> Result<Destination> {
        let found = self.otlp.as_deref().map(Collector::find).transpose();
        Ok(Destination(found.context("--otlp")?))
    }
}

impl Destination {
    /// The port that connections are made to.
    pub(crate) fn port(&self) -> Option<u16> {
        self.0.as_ref().map(Collector::port)
    }

    /// Starts the thread that sends.
    pub(crate) fn start(self) -> Result<Telemetry> {
        self.0.map_or(Ok(Telemetry::default()), Telemetry::start).context("--otlp")
    }
}
