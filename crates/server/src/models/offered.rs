//! What a server is given of each model: what is known without loading it, and who loads it.

use motley_engine::batching::PrefixCache;
use motley_engine::models::KeepAlive;
use motley_engine::{BatchOptions, Engine};
use motley_model::ModelSpec;
use std::error::Error;
use std::sync::Arc;

/// The models of a server, and the memory they share.
pub struct OfferedModels {
    /// At least one; the first answers requests that name none.
    pub models: Vec<OfferedModel>,
    /// RAM, then devices.
    pub memories: Vec<Memory>,
    /// How long a model stays that nobody uses.
    pub keep_alive: KeepAlive,
    pub loader: Arc<dyn Loader>,
}

/// A memory that models share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pub name: String,
    pub bytes: u64,
}

/// A model that can be asked for.
#[derive(Debug, Clone)]
pub struct OfferedModel {
    /// Its name in requests.
    pub name: String,
    pub spec: Arc<ModelSpec>,
    /// Most tokens of a prompt and its answer together, as far as is known before it is loaded.
    pub longest: u32,
    /// Bytes of each memory that it takes.
    pub needs: Vec<u64>,
}

/// Loads models, by their place in the list. May take minutes; called from a thread that may wait.
pub trait Loader: Send + Sync {
    fn load(&self, model: usize) -> Result<LoadedModel, LoadError>;
}

/// Why a model could not be loaded, in the loader's words.
pub type LoadError = Box<dyn Error + Send + Sync>;

/// A model in memory, and how requests for it are batched.
pub struct LoadedModel {
    pub engine: Arc<Engine>,
    pub batch: BatchOptions,
    /// Where beginnings of prompts are kept beyond memory.
    pub prefix_cache: Option<PrefixCache>,
}
