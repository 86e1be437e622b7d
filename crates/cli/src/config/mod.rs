//! Where flags come from besides the command line: variables (`MOTLEY_MEMORY=12G`) and a file. What
//! is typed wins over a variable, a variable over the file, the file over what Motley chooses.
//!
//! * `file`: the file, read and checked.
//! * `flags`: variables and the file's values given to clap, which parses them as if typed.

mod file;
mod flags;

pub(crate) use file::{Settings, path};
pub(crate) use flags::{Origin, all_flags, is_settable, variable_of};

use flags::with_settings;

use crate::args::Motley;
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches};

/// What was asked for, and what of it was not typed.
pub(crate) struct Typed {
    pub(crate) motley: Motley,
    pub(crate) origins: Vec<Origin>,
}

/// Parses the command line; ends the program with clap's words where it is wrong.
pub(crate) fn parse() -> Result<Typed> {
    let command = with_settings(Motley::command(), &Settings::read()?)?;
    let matches = command.clone().get_matches();
    let origins = flags::origins(&command, &matches);
    let motley = Motley::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    Ok(Typed { motley, origins })
}

/// One line about what was not typed; `None` where all was.
pub(crate) fn said(origins: &[Origin]) -> Option<String> {
    let each: Vec<String> = origins.iter().map(ToString::to_string).collect();
    (!each.is_empty()).then(|| format!("not typed, but set: {}", each.join(", ")))
}
