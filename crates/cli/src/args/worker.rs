//! `motley worker`, and flags of those who use workers: what they take.

use super::sandbox::SandboxArgs;
use super::wishes::TrustArgs;
use crate::npu::NpuArgs;
use anyhow::{Result, ensure};
use clap::Args;
use motley_plan::decide::parse::parse_size;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

/// `motley worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes: the same model as the
    /// head's
    pub(crate) model: PathBuf,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:7467")]
    pub(crate) listen: SocketAddr,
    /// Layers computed here, e.g. 0-11 (default: all)
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_range)]
    pub(crate) layers: Option<Range<u32>>,
    /// Experts of each layer computed here, e.g. 0-63 (default: all)
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_range)]
    pub(crate) experts: Option<Range<u32>>,
    /// Ceiling for everything, e.g. 8G: experts that do not fit stay on disk (default: what the
    /// machine can give)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Threads to compute with (default: every core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(crate) threads: Option<u32>,
    /// Print a code by which one more head is let in; `motley run --workers` asks for it once
    #[arg(long)]
    pub(crate) pair: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

/// `motley workers`.
#[derive(Debug, Args)]
pub(crate) struct KnownWorkers {
    /// Host and port of each (default: all that are known)
    #[arg(value_name = "HOST:PORT")]
    pub(crate) workers: Vec<String>,
}

/// Workers of a head.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workers")]
pub(crate) struct WorkersArgs {
    /// Other machines that compute experts (`motley worker`): host:port, several with commas
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) workers: Vec<String>,
    /// Code that `motley worker --pair` prints, for a worker this machine has not met; asked for on
    /// a terminal
    #[arg(long, value_name = "CODE", requires = "workers")]
    pub(crate) pair_code: Option<String>,
}

impl WorkersArgs {
    /// Whether some were named.
    pub(crate) fn is_used(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Refuses the static graphs beside them: both take rows before the others.
    pub(crate) fn check_beside(&self, npu: &NpuArgs) -> Result<()> {
        ensure!(
            !self.is_used() || !npu.is_used(),
            "--workers and --npu both take rows before the others; use one of them"
        );
        Ok(())
    }
}

/// `3-7` or `3`: numbers from the first to the last.
fn parse_range(text: &str) -> std::result::Result<Range<u32>, String> {
    let number = |part: &str| {
        let wrong = |_| format!("`{part}` is no number; write 0-11, or 5 for one");
        part.trim().parse::<u32>().map_err(wrong)
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    if last < first || last == u32::MAX {
        return Err(format!("`{text}` ends before it begins; write 0-11"));
    }
    Ok(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_refused() {
        assert_eq!(parse_range("0-11"), Ok(0..12));
        assert_eq!(parse_range("5"), Ok(5..6));
        for wrong in ["", "a", "3-", "7-3", "0-4294967295"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
}
