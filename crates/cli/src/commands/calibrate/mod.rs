//! `motley calibrate`: measures this machine, or records how a model routes on given text. One
//! file each; here is where results go.

use crate::args::{Calibrate, Global};
use anyhow::{Context, Result, ensure};
use motley_calibrate::library;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

mod machine;
mod passes;
mod profile;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Calibrate, columns: Option<u16>) -> Result<()> {
    if let Some(output) = &args.output {
        // Told before a minute of measuring, not after it.
        ensure!(!output.exists(), "{} is there already; nothing is written over", output.display());
    }
    match (&args.model, args.text.is_empty()) {
        (Some(model), false) => profile::run(global, args, model, columns),
        _ => machine::run(global, args, columns),
    }
}

/// A new file: the one asked for, which must not be there yet, or one in the library.
fn new_file(
    output: Option<&Path>,
    kind: &str,
    stem: &str,
    extension: &str,
) -> Result<(File, PathBuf)> {
    let Some(path) = output else {
        return Ok(library::create(&library::folder()?.join(kind), stem, extension)?);
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file = file.with_context(|| format!("cannot write {} as a new file", path.display()))?;
    Ok((file, path.to_path_buf()))
}
