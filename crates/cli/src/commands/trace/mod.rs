//! `motley trace`: routing recorded, converted and described, one file each; `open` is what they
//! share.

use crate::args::{Global, TraceCommand};
use anyhow::Result;

mod import;
mod open;
mod record;
mod summary;

pub(crate) use open::open;

/// Runs the command.
pub(crate) fn run(global: &Global, trace: &TraceCommand, columns: Option<u16>) -> Result<()> {
    match trace {
        TraceCommand::Import(import) => import::run(global, import),
        TraceCommand::Summary(summary) => summary::run(global, summary, columns),
        TraceCommand::Record(record) => record::run(global, record),
    }
}
