//! `motley-engine`: runs a model in real time. Two nouns at the door: an
//! [`Engine`] is a loaded model, a [`Session`] is one timeline on it.
//!
//! Modules, in reading order:
//! * [`engine`]: loading, vocabulary, sessions.
//! * [`session`]: chunked prefill (N7), decode, generation, cancellation.
//! * [`batching`]: many answers at once on one context.
//! * [`cores`]: sets of threads for both phases; `crowd`: fewer while others take the cores.
//! * [`mod@tune`]: choices of cores measured on a live session.
//! * `drive`: what happens to each routed-expert block; `loads`: its experts, counted.
//! * [`helper`]: a unit beside the CPU that takes blocks; `npu`: one (feature `npu`).
//! * [`hybrid`]: experts in RAM beside a device that holds some of them (H1).
//! * [`streaming`]: experts streamed from disk within a budget (M3).
//! * `experts`: their bytes: arenas and the disk.
//! * [`presence`]: which of them are in memory, for others to read.
//! * `timeline`: what ran when; [`figures`]: what blocks took and read.
//! * `foresight`: router scores and guesses for those who ask; `gates`: the routers.
//! * [`pressure`]: the machine's memory, before and while it runs.
//! * [`routing`]: watching which experts the router chose.
//! * [`sampling`]: from settings to llama.cpp's sampler chain.
//! * [`chat`]: the model's own chat template; `template`: what it expects of Python.
//! * [`text`]: tokens to text as they arrive.
//! * [`eval`]: perplexity and multiple choice, with intervals.

#![forbid(unsafe_code)]

pub mod batching;
pub mod chat;
pub mod cores;
mod crowd;
mod drive;
pub mod engine;
pub mod eval;
mod experts;
pub mod figures;
mod foresight;
mod gates;
pub mod helper;
pub mod hybrid;
mod loads;
#[cfg(feature = "npu")]
pub mod npu;
pub mod presence;
pub mod pressure;
pub mod routing;
pub mod sampling;
pub mod session;
pub mod streaming;
mod template;
pub mod text;
mod timeline;
pub mod tune;

pub use batching::{BatchFigures, BatchOptions, Batching, SubmitError};
pub use chat::{ChatError, ChatMessage, Conversation};
pub use cores::{MachineCores, ThreadSet, ThreadSets};
pub use engine::{Engine, EngineError, EngineOptions, Loading};
pub use figures::StreamFigures;
pub use foresight::Foreseen;
pub use hybrid::{DeviceRoom, HybridFigures, HybridHandle, HybridOptions, HybridReport};
pub use motley_ggml::gpu::{GpuDevice, gpu_devices};
pub use motley_ggml::{
    Grammar, GrammarError, LayerGpu, Runtime, Seam, SeamConflict, cpu::unused_cpu_level,
    schema_grammar,
};
pub use motley_sched::cache::PolicyChoice;
pub use motley_sched::prefetch::PrefetchChoice;
pub use motley_store::FaultPlan;
pub use pressure::machine_memory;
pub use routing::{Routed, RoutingWatcher};
pub use sampling::Sampling;
pub use session::{
    Cancel, Finish, Generation, Session, SessionError, SessionOptions, SessionStats, chunk_for,
};
pub use streaming::StreamingOptions;
pub use text::TextStream;
pub use tune::{Tuned, tune};
