//! Opening a trace in whatever format it is.

use crate::args::WasteArgs;
use anyhow::{Context, Result, bail};
use motley_trace::VisitSource;
use motley_trace::import::Format;
use motley_trace::import::waste::WasteModel;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A trace in any format. A waste file needs its experts waste.
pub(crate) fn open(path: &Path, waste: &WasteArgs) -> Result<Box<dyn VisitSource>> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(|| {
        format!("cannot open trace {}; `motley trace record` makes one", name())
    })?;
    let mut reader = BufReader::new(file);
    let format = Format::of(&mut reader).with_context(name)?;
    let Some(experts) = waste.experts.or((format != Format::Waste).then_some(0)) else {
        bail!(
            "{}: a trace of waste does not say how many experts its model has; \
             give --experts to `motley trace import`",
            name()
        );
    };
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let model = WasteModel { name: waste.name.clone().unwrap_or_else(stem), experts };
    format.source(reader, model).with_context(|| {
        format!("{} is not a trace of Motley, BigMoeOnEdge or waste", path.display())
    })
}
