//! What commands about Motley itself take: settings, the service, reports of defects.

use clap::{Args, Subcommand};

/// `motley config`.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Write a file with every key, all of them commented out
    #[arg(long)]
    pub(crate) init: bool,
}

/// `motley service`.
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    /// Serve a model from now on, also after a restart: writes a systemd unit of this user's
    Install(Install),
    /// Stop serving, and remove the unit
    Remove,
}

/// `motley service install`.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Print the unit and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// What `motley serve` takes: the model, and its flags
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "MODEL [FLAGS]"
    )]
    pub(crate) serve: Vec<String>,
}
