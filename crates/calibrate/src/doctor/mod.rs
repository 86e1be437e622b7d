//! What this machine has, what Motley uses of it, what is missing and how to get it.
//!
//! * [`facts`]: everything read from the machine, as plain data.
//! * [`build`]: what this build of ggml can use.
//! * [`direct`]: whether files can be read past the page cache.
//! * [`advice`]: facts to one line each, with a way out where something is missing.

pub mod advice;
pub mod build;
pub mod direct;
pub mod facts;

pub use advice::{Line, State, advise};
pub use build::Build;
pub use direct::DirectIo;
pub use facts::{Calibrated, Facts, Known, Sandbox};

use std::path::Path;

use motley_ggml::Runtime;
use motley_host::{energy, sandbox};

use crate::library;

/// Facts and advice for the machine this runs on, and the disk below `path`.
pub fn examine(runtime: &Runtime, path: &Path) -> (Facts, Vec<Line>) {
    let known = Known {
        build: Build::of_this(runtime),
        direct_io: direct::probe(path),
        calibration: calibration(),
        gpu_meters: energy::gpu_meters().iter().map(|meter| meter.name()).collect(),
        sandbox: Sandbox::of(sandbox::offered()),
    };
    let facts = Facts::read(Path::new("/"), path, known);
    let lines = advise(&facts);
    (facts, lines)
}

/// The one of this user that counts on this processor.
fn calibration() -> Option<Calibrated> {
    let (_, found) = library::of_this_machine()?;
    let run = found.provenance;
    Some(Calibrated { date: run.date, load_one_min: run.load_one_min, quick: run.quick })
}
