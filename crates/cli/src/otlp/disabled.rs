//! Built without traces: no flag, nobody is told.

use anyhow::Result;
use clap::Args;
use motley_server::Telemetry;

/// No flags.
#[derive(Debug, Args)]
pub(crate) struct OtlpArgs {}

/// Nobody.
pub(crate) struct Destination {}

impl OtlpArgs {
    /// Nobody.
    pub(crate) fn find(&self) -> Result<Destination> {
        Ok(Destination {})
    }
}

impl Destination {
    /// None.
    pub(crate) fn port(&self) -> Option<u16> {
        None
    }

    /// Starts nothing.
    pub(crate) fn start(self) -> Result<Telemetry> {
        Ok(Telemetry::default())
    }
}
