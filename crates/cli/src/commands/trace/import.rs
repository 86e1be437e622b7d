//! `motley trace import`: another project's trace in our format.

use super::open::open;
use crate::args::{Global, Import};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use motley_trace::whole_file::WholeFile;
use motley_trace::{TraceHeader, TraceWriter, Visit, VisitSource};
use serde::Serialize;
use std::io::{self, BufWriter};
use std::path::Path;

/// Runs the command.
pub(crate) fn run(global: &Global, import: &Import) -> Result<()> {
    let mut source = open(&import.file, &import.waste)?;
    let visits = copy(source.as_mut(), &import.file, &import.output)?;
    let report = ImportReport { output: &import.output, visits, header: source.header() };
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
        return Ok(());
    }
    let TraceHeader { model, layers, experts, k, .. } = report.header;
    print_page(&format!(
        "{model}: {layers} layers × {experts} experts, {k} per token; {visits} visits\n\
         Try it: motley sim --trace {}",
        import.output.display()
    ))
}

fn copy(source: &mut dyn VisitSource, from: &Path, to: &Path) -> Result<u64> {
    let shown = || format!("cannot write {}", to.display());
    let file = WholeFile::replace(to).with_context(shown)?;
    let mut writer = TraceWriter::new(BufWriter::new(file), source.header().clone())?;
    let mut visit = Visit::default();
    let mut visits = 0;
    while source.read_visit(&mut visit).with_context(|| from.display().to_string())? {
        writer.write_visit(&visit).with_context(shown)?;
        visits += 1;
    }
    let file = writer.finish().with_context(shown)?.into_inner();
    let file = file.map_err(io::IntoInnerError::into_error);
    file.and_then(WholeFile::finish).with_context(shown)?;
    Ok(visits)
}

#[derive(Serialize)]
struct ImportReport<'a> {
    output: &'a Path,
    visits: u64,
    header: &'a TraceHeader,
}
