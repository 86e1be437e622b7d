//! What every command takes.

use clap::Args;

/// Flags every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr (-vv: llama.cpp's log too)
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}
