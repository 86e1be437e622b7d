//! What commands that compute strangers' text take: whether they give up what they do not need.

use clap::{Args, ValueEnum};

/// Flags of the sandbox.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Safety")]
pub(crate) struct SandboxArgs {
    /// Give up what is not needed once the model is loaded: other files, programs, connections
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = SandboxArg::Auto)]
    pub(crate) sandbox: SandboxArg,
}

/// Values of `--sandbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxArg {
    /// As far as this system has it (`motley doctor` says how far)
    Auto,
    /// All of it, or do not start
    Require,
    /// Nothing, for debuggers and drivers that need more
    Off,
}
