//! A compiled graph: built once for its experts, then run with rows.

use crate::build::{self, INPUT, OUTPUT};
use crate::cache::{GraphCache, GraphKey};
use crate::provider::ProviderConfig;
use crate::rows::GroupRows;
use crate::runtime::Runtime;
use crate::spec::{GraphLimits, GraphSpec, Precision, Refused};
use crate::weights::ExpertWeights;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::TensorRef;
use std::path::Path;

/// Why a graph could not be compiled or run.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// These experts cannot be one.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The weights given are not those of the spec.
    #[error("expert {index} of {experts} does not have the matrices of its graph")]
    Weights {
        /// Place in the graph.
        index: usize,
        experts: usize,
    },
    /// ONNX Runtime or the provider refused.
    #[error("{doing} with {provider}: {reason}")]
    Runtime {
        /// What was tried.
        doing: &'static str,
        provider: &'static str,
        reason: String,
    },
}

/// Everything but the weights that a graph depends on.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    pub spec: &'a GraphSpec,
    pub config: &'a ProviderConfig,
    /// What the device allows.
    pub limits: &'a GraphLimits,
}

/// A compiled graph.
pub struct Graph {
    spec: GraphSpec,
    provider: &'static str,
    session: Session,
    runs: u64,
}

impl Graph {
    /// Compiles the graph of `experts`.
    pub fn compile(
        runtime: &Runtime,
        recipe: Recipe<'_>,
        experts: &[&ExpertWeights],
    ) -> Result<Self, GraphError> {
        check(&recipe)?;
        Self::build(runtime, recipe, experts, None)
    }

    /// As [`Graph::compile`], from `cache` when it is there; `experts` is called only when
    /// it is not.
    pub fn cached<E: From<GraphError>>(
        runtime: &Runtime,
        recipe: Recipe<'_>,
        (cache, key): (&GraphCache, &GraphKey),
        experts: impl FnOnce() -> Result<Vec<ExpertWeights>, E>,
    ) -> Result<Self, E> {
        check(&recipe)?;
        let path = cache.path(key);
        let opened = cache.is_whole(&path).then(|| Self::open(runtime, recipe, &path));
        // A file that does not open is compiled again: the cache may lose, never mislead.
        if let Some(Ok(graph)) = opened {
            return Ok(graph);
        }
        let weights = experts()?;
        let weights: Vec<&ExpertWeights> = weights.iter().collect();
        let graph = match cache.unfinished(recipe.config, &path) {
            Some(unfinished) => {
                let built = Self::build(runtime, recipe, &weights, Some(&unfinished));
                cache.keep(&unfinished, &path);
                // A full disk costs the next start a compilation, not this one its graph.
                built.or_else(|_| Self::build(runtime, recipe, &weights, None))?
            }
            None => {
                let cache_dir = cache.provider_folder(key);
                let config = ProviderConfig { cache_dir, ..recipe.config.clone() };
                let recipe = Recipe { config: &config, ..recipe };
                Self::build(runtime, recipe, &weights, None)?
            }
        };
        cache.trim(key);
        Ok(graph)
    }

    /// Builds and compiles; what was compiled is written to `kept`.
    fn build(
        runtime: &Runtime,
        recipe: Recipe<'_>,
        experts: &[&ExpertWeights],
        kept: Option<&Path>,
    ) -> Result<Self, GraphError> {
        let Recipe { spec, config, .. } = recipe;
        check_weights(spec, experts)?;
        let failed = failure("building a graph", config);
        let model = build::model(spec, experts).map_err(|error| failed(error.to_string()))?;
        let failed = failure("compiling a graph", config);
        let mut builder = builder(runtime, config)?;
        if let Some(kept) = kept {
            builder = builder
                .with_optimized_model_path(kept)
                .map_err(|error| failed(error.to_string()))?;
        }
        let session = model.into_session(&builder).map_err(|error| failed(error.to_string()))?;
        Ok(Self { spec: *spec, provider: config.provider.name(), session, runs: 0 })
    }

    /// A graph kept by an earlier run.
    fn open(runtime: &Runtime, recipe: Recipe<'_>, path: &Path) -> Result<Self, GraphError> {
        let failed = failure("opening a kept graph", recipe.config);
        let session = builder(runtime, recipe.config)?
            .commit_from_file(path)
            .map_err(|error| failed(error.to_string()))?;
        let provider = recipe.config.provider.name();
        Ok(Self { spec: *recipe.spec, provider, session, runs: 0 })
    }

    /// Its shape.
    pub fn spec(&self) -> &GraphSpec {
        &self.spec
    }

    /// How often it was launched.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Runs all rows, padding included, into `output` `[G·C, H]`; rows that hold nothing
    /// hold nothing useful there.
    ///
    /// # Panics
    /// When `rows` are of another spec.
    pub fn run(&mut self, rows: &GroupRows, output: &mut Vec<f32>) -> Result<(), GraphError> {
        let shape = [self.spec.rows(), self.spec.shape.hidden];
        assert_eq!(rows.input().len(), shape[0] * shape[1], "rows of another graph");
        let provider = self.provider;
        let failed = |error: ort::Error| GraphError::Runtime {
            doing: "running a graph",
            provider,
            reason: error.to_string(),
        };
        self.runs += 1;
        let input = TensorRef::from_array_view((shape, rows.input())).map_err(failed)?;
        let outputs = self.session.run(ort::inputs![INPUT => input]).map_err(failed)?;
        let (_, values) = outputs[OUTPUT].try_extract_tensor::<f32>().map_err(failed)?;
        output.clear();
        output.extend_from_slice(values);
        Ok(())
    }
}

/// What can be refused before anything is built.
fn check(recipe: &Recipe<'_>) -> Result<(), GraphError> {
    recipe.spec.check(recipe.limits)?;
    let provider = recipe.config.provider;
    if recipe.spec.precision == Precision::Q4 && !provider.takes_four_bits() {
        return Err(Refused::FourBits { provider: provider.name() }.into());
    }
    Ok(())
}

fn check_weights(spec: &GraphSpec, experts: &[&ExpertWeights]) -> Result<(), GraphError> {
    let wrong = experts.iter().position(|expert| !expert.fits(spec));
    let missing = (experts.len() != spec.experts).then_some(experts.len());
    match wrong.or(missing) {
        Some(index) => Err(GraphError::Weights { index, experts: experts.len() }),
        None => Ok(()),
    }
}

fn builder(runtime: &Runtime, config: &ProviderConfig) -> Result<SessionBuilder, GraphError> {
    let failed = failure("preparing a session", config);
    let builder = SessionBuilder::new(runtime.environment()).map_err(|e| failed(e.to_string()))?;
    let builder = builder.with_intra_threads(config.threads).map_err(|e| failed(e.to_string()))?;
    let builder = builder
        .with_optimization_level(GraphOptimizationLevel::Level1)
        .map_err(|error| failed(error.to_string()))?;
    // A spinning pool would take the cores from the CPU path beside it.
    let builder =
        builder.with_intra_op_spinning(false).map_err(|error| failed(error.to_string()))?;
    match config.dispatch() {
        Some(dispatch) => {
            builder.with_execution_providers([dispatch]).map_err(|error| failed(error.to_string()))
        }
        None => Ok(builder),
    }
}

fn failure(doing: &'static str, config: &ProviderConfig) -> impl Fn(String) -> GraphError + use<> {
    let provider = config.provider.name();
    move |reason| GraphError::Runtime { doing, provider, reason }
}
