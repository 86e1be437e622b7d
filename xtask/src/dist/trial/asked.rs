//! How an installed program is called in a trial.

use std::path::Path;
use std::process::Command;

/// What the model continues, with how many tokens: the most likely ones, so that answers compare.
pub(super) const ASKED: [&str; 7] =
    ["--raw", "--temperature", "0", "--prompt", "The capital of France is", "--tokens", "8"];

/// A program with a folder of its own for what it measures and keeps: not the user's.
pub(super) fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("HOME", home);
    for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    command
}
