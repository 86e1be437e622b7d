//! Hot experts on a static-graph device during prefill, everything else on the other units, all
//! at once (H1), wherever the experts are (M8). Shapes come from `motley_plan::tiers`, overflow from
//! `motley_sched::overflow`; this module carries them out.
//!
//! * `options`: how the device is used.
//! * `calibrate`: a profile from text (N1).
//! * `shape`: one layer's groups and capacities from a profile (N1, N2, N4, N5).
//! * `weights`: experts read from the model's files, as numbers.
//! * `layer`: a layer's compiled graphs and the rows on their way (W3).
//! * `group`: one graph and its rows.
//! * `launch`: threads that launch graphs, several at once.
//! * `run`: a block divided, computed and put together (N3).
//! * [`figures`]: drop and padding rates per layer (N8).

mod calibrate;
mod figures;
mod group;
mod launch;
mod layer;
mod options;
mod run;
mod shape;
mod weights;

pub use calibrate::profile_of;
pub use figures::{LayerFigures, NpuFigures};
pub use motley_npu::cache::MAX_CACHE_BYTES;
pub use motley_npu::{GraphLimits, Precision, Provider, ProviderConfig};
pub use motley_plan::tiers::GroupCosts;
pub use options::{NpuChoice, NpuOptions, NpuOverflow};
pub use shape::even_profile;

use crate::blocks::gates::{Gates, GatesError};
use crate::engine::Engine;
use motley_model::ModelSpec;
use motley_npu::{GraphCache, Runtime, RuntimeError};
use motley_profile::Profile;
use options::Shared;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Why there is no device for a model.
#[derive(Debug, thiserror::Error)]
pub enum NpuError {
    /// No ONNX Runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The profile is another model's.
    #[error(
        "the profile has {found} experts in {found_layers} layers, the model {experts} in {layers}"
    )]
    Profile {
        /// Experts per layer of the profile.
        found: u32,
        found_layers: u32,
        /// Experts per layer of the model.
        experts: u32,
        layers: u32,
    },
    /// The folder for compiled graphs cannot be made.
    #[error("{}: {source}", path.display())]
    Cache { path: PathBuf, source: std::io::Error },
    /// Pruning goes by router weights, and they cannot be read.
    #[error(transparent)]
    Gates(#[from] GatesError),
}

/// Loads ONNX Runtime, from `library` or where `ORT_DYLIB_PATH` says; the file it was.
pub fn load_runtime(library: Option<&Path>) -> Result<PathBuf, NpuError> {
    Runtime::load(library)?;
    Ok(Runtime::library(library)?)
}

/// What the device did, while sessions run.
#[derive(Clone)]
pub struct NpuHandle(Arc<Shared>);

impl NpuHandle {
    /// The figures so far.
    pub fn figures(&self) -> NpuFigures {
        self.0.figures.lock().expect("no panic holds this lock").clone()
    }

    /// The figures since the last time they were taken.
    pub fn take_figures(&self) -> NpuFigures {
        let mut figures = self.0.figures.lock().expect("no panic holds this lock");
        let refused = figures.refused.clone();
        std::mem::replace(&mut *figures, NpuFigures { refused, ..NpuFigures::default() })
    }
}

impl Engine {
    /// Gives sessions started from now on a static-graph device. Graphs are compiled
    /// when a layer first meets a chunk that is large enough.
    pub fn use_npu(&mut self, options: NpuOptions) -> Result<NpuHandle, NpuError> {
        let (spec, files) = self.files();
        check_profile(&spec, &options.profile)?;
        let runtime = Runtime::load(options.library.as_deref())?;
        let cache = match &options.cache {
            Some(path) => Some(
                GraphCache::open(path, options.cache_bytes)
                    .map_err(|source| NpuError::Cache { path: path.clone(), source })?,
            ),
            None => None,
        };
        let prunes = options.overflow == NpuOverflow::Prune;
        let gates = if prunes { Some(Gates::read(&spec, &files)?) } else { None };
        let figures = Mutex::default();
        let shared = Arc::new(Shared { spec, files, runtime, cache, gates, options, figures });
        let made = Arc::clone(&shared);
        self.set_first_unit(Arc::new(move |places| {
            Box::new(run::NpuUnit::new(Arc::clone(&made), places))
        }));
        Ok(NpuHandle(shared))
    }
}

fn check_profile(spec: &ModelSpec, profile: &Profile) -> Result<(), NpuError> {
    let header = &profile.header;
    let (found, found_layers) = (u32::from(header.experts), u32::from(header.layers));
    let (experts, layers) = (spec.experts, spec.layers.len() as u32);
    if (found, found_layers) == (experts, layers) {
        return Ok(());
    }
    Err(NpuError::Profile { found, found_layers, experts, layers })
}
