//! A measurement of a few seconds for the first run of a model on a machine: kernels of its own
//! experts at one token and at many, memory, the disk its file is on, and links to GPUs. Coarser
//! than a calibration of a minute, and marked so that such a one always wins.

use std::path::PathBuf;
use std::time::Duration;

use motley_cost::calibration::CalibrationFile;
use motley_ggml::Runtime;
use motley_model::ModelSpec;

use super::clock::Steps;
use super::experts::Depth;
use super::{ExpertKind, Extent, MeasureError, MeasureOptions, run};

/// Time a first run may take for it.
pub const QUICK_BUDGET: Duration = Duration::from_secs(5);
/// Most that is read of the model's file.
const DISK_BYTES: u64 = 256 << 20;

/// What a quick measurement needs to know beside the model.
#[derive(Debug, Clone)]
pub struct QuickOptions {
    /// Time for everything: [`QUICK_BUDGET`].
    pub budget: Duration,
    /// Threads a run will use; by default every core.
    pub threads: Option<u32>,
    /// The model's (first) file, to measure its disk with.
    pub file: PathBuf,
    /// Program and version for the provenance.
    pub program: String,
}

/// Measures what `model` needs; `on_progress` hears what is done now and how far it is, 0 to 1.
/// Steps share the budget, and what it leaves no time for is skipped.
pub fn quick(
    runtime: &Runtime,
    model: &ModelSpec,
    options: &QuickOptions,
    on_progress: &mut dyn FnMut(&str, f64),
) -> Result<CalibrationFile, MeasureError> {
    let extent = Extent {
        kinds: ExpertKind::of_model(model),
        depth: Depth::QUICK,
        counts: |most| vec![most],
        disk_bytes: DISK_BYTES,
        is_quick: true,
    };
    let options = MeasureOptions {
        budget: options.budget,
        threads: options.threads,
        disk: Some(options.file.clone()),
        kinds: Vec::new(),
        program: options.program.clone(),
        seed: 0,
    };
    run(runtime, &options, &extent, &mut Steps::new(on_progress))
}
