//! `motley calibrate`: measures this machine, or records how a model routes on given text. One
//! file each; `output` is where results go.

use crate::args::{Calibrate, Global};
use anyhow::{Result, ensure};

mod chosen;
mod machine;
mod output;
mod passes;
mod profile;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Calibrate, columns: Option<u16>) -> Result<()> {
    if let Some(output) = &args.output {
        // Reported before a minute of measuring, not after it.
        ensure!(!output.exists(), "{} is there already; nothing is written over", output.display());
    }
    match (&args.model, args.text.is_empty()) {
        (Some(model), false) => profile::run(global, args, model, columns),
        _ => machine::run(global, args, columns),
    }
}
