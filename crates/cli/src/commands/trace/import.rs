//! `motley trace import`: another project's trace in our format.

use super::open::open;
use crate::args::{Global, Import};
use anyhow::{Context, Result};
use motley_trace::{TraceHeader, TraceWriter, Visit, VisitSource};
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(global: &Global, import: &Import) -> Result<()> {
    let mut source = open(&import.file, &import.waste)?;
    let visits = copy(source.as_mut(), &import.file, &import.output)?;
    let report = ImportReport { output: &import.output, visits, header: source.header() };
    if global.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    let TraceHeader { model, layers, experts, k, .. } = report.header;
    println!("{model}: {layers} layers × {experts} experts, {k} per token; {visits} visits");
    println!("Try it: motley sim --trace {}", import.output.display());
    Ok(())
}

fn copy(source: &mut dyn VisitSource, from: &Path, to: &Path) -> Result<u64> {
    let file = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut writer = TraceWriter::new(BufWriter::new(file), source.header().clone())?;
    let mut visit = Visit::default();
    let mut visits = 0;
    while source.read_visit(&mut visit).with_context(|| from.display().to_string())? {
        writer.write_visit(&visit).with_context(|| to.display().to_string())?;
        visits += 1;
    }
    writer.finish().with_context(|| to.display().to_string())?;
    Ok(visits)
}

#[derive(Serialize)]
struct ImportReport<'a> {
    output: &'a Path,
    visits: u64,
    header: &'a TraceHeader,
}
