//! llama.cpp's own nouns as safe Rust: everything that needs llama.cpp itself and not only
//! ggml. Calls it directly; holds no policy.
//!
//! Modules, in reading order:
//! * `runtime`: starting it, once per process; `backends`: where its kernels come from; `log`: its
//!   log; `shim`: where its exceptions end; `versions`: which one it is.
//! * `model`: loading; `weights`: from where; `vfile`: the virtual file it loads from;
//!   `pages`: large pages for what it allocates.
//! * `vocabulary`: its tokens, with `facts` of them; `tokenize`: text as tokens, within bounds;
//!   `extent`: what of a text those bounds count.
//! * `context`: the KV cache, pools and executor of one timeline; `affinity`: where the thread
//!   that decodes runs; `batch`: what is decoded.
//! * `kept`: blocks beyond their graph, for rows that come from elsewhere.
//! * `sampler`: how tokens are chosen. `heap`: freed memory, back to the system;
//!   `exit`: the end of the process.

mod affinity;
mod backends;
mod batch;
mod context;
mod exit;
mod extent;
mod facts;
mod heap;
mod kept;
mod log;
mod model;
mod pages;
mod runtime;
mod sampler;
mod shim;
mod tokenize;
pub mod versions;
mod vfile;
mod vocabulary;
mod weights;

pub use backends::NoBackends;
pub use batch::{Batch, BatchToken};
pub use context::{Context, ContextError, ContextOptions, DecodeError, PoolChoice, Pools};
pub use exit::exit_now;
pub use heap::give_back_freed;
pub use kept::{KeepError, KeptBlocks, RowsIn};
pub use model::{LayerGpu, LoadError, LoadProgress, Model, ModelOptions};
pub use runtime::StartError;
pub use sampler::{Sampler, SamplerStage, TokenBias};
pub use shim::Thrown;
pub use tokenize::{Parsing, TokenizeError};
pub use vfile::{ReadCounts, VirtualFile};
pub use vocabulary::{InfillTokens, TextBounds};
pub use weights::{LaidOutSource, LaidOutWeights, MappedWeights, Stays, Weights};
