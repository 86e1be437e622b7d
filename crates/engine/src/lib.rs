//! `motley-engine`: runs a model in real time. Two nouns at the door: an
//! [`Engine`] is a loaded model, a [`Session`] is one timeline on it.
//!
//! Modules, in reading order:
//! * [`engine`]: loading, vocabulary, sessions; [`weights`]: where weights come from.
//! * [`rehearsal`]: a header tried with everything but the weights.
//! * [`execute`]: a decision as the engine's options.
//! * [`streams`]: several streams decoded together, for measuring.
//! * [`session`]: chunked prefill (N7), decode, generation with and without guesses, cancellation.
//! * `chunk`: how long the chunks of a prompt are.
//! * [`batching`]: many answers at once on one context.
//! * [`hosted`]: the executor for a model in another program's llama.cpp.
//! * `layouts`: how this CPU can lay out a model's experts; `record`: what a session came to.
//! * [`blocks`]: what happens to each routed-expert block: in memory, streamed, with devices.
//! * [`threads`]: which threads compute.
//! * [`text`]: between text and tokens.
//! * [`energy`]: joules of what is computed, by meter or by model (M7).
//! * [`eval`]: perplexity and multiple choice, with intervals.
//! * [`worker`]: experts for other machines; [`identity`]: whether both have the same model.
//! * [`clock`]: the wall clock, or a simulation's. `sync`: what threads wait with.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "llama"), allow(dead_code, reason = "part of it serves sessions"))]

#[cfg(feature = "llama")]
pub mod batching;
pub mod blocks;
#[cfg(feature = "llama")]
mod chunk;
pub mod clock;
#[cfg(feature = "llama")]
pub mod energy;
#[cfg(feature = "llama")]
pub mod engine;
#[cfg(feature = "llama")]
pub mod eval;
#[cfg(feature = "llama")]
pub mod execute;
pub mod hosted;
#[cfg(feature = "llama")]
pub mod identity;
mod layouts;
mod record;
#[cfg(feature = "llama")]
pub mod rehearsal;
#[cfg(feature = "llama")]
pub mod session;
#[cfg(feature = "llama")]
pub mod streams;
mod sync;
#[cfg(feature = "llama")]
pub mod text;
pub mod threads;
#[cfg(feature = "llama")]
pub mod weights;
#[cfg(feature = "llama")]
pub mod worker;

#[cfg(feature = "llama")]
pub use batching::{BatchFigures, BatchOptions, Batching, SubmitError};
pub use blocks::figures::StreamFigures;
pub use blocks::machine::{
    DeviceOptions, DeviceRoom, MachineFigures, MachineHandle, MachineReport,
};
pub use blocks::options::StreamingOptions;
pub use blocks::predict::{Guessed, PredictionAccuracy};
pub use blocks::pressure::machine_memory;
pub use blocks::routing::{RoutedBlock, RoutingWatcher};
#[cfg(feature = "llama")]
pub use chunk::chunk_for;
#[cfg(feature = "llama")]
pub use energy::{EnergyCounter, EnergyWatch, Joules};
#[cfg(feature = "llama")]
pub use engine::{Engine, EngineError, EngineOptions};
pub use layouts::offered_layouts;
pub use motley_ggml::cpu::built_features as cpu_features;
pub use motley_ggml::gpu::{GpuDevice, gpu_devices};
pub use motley_ggml::hosted::load_backends as load_host_backends;
#[cfg(feature = "llama")]
pub use motley_ggml::{
    LayerGpu, StartError, TokenBias, TokenizeError, cpu::unused_cpu_level, exit_now, versions,
};
pub use motley_ggml::{Runtime, Seam};
pub use motley_host::{load, process_memory, sandbox};
pub use motley_plan::Loading;
pub use motley_plan::cores::{MachineCores, ThreadSet, ThreadSets};
pub use motley_sched::cache::PolicyChoice;
pub use motley_sched::prefetch::PrefetchChoice;
pub use motley_sched::{Phase, admission, models};
pub use motley_store::FaultPlan;
pub use motley_trace::WorkerRecord;
#[cfg(feature = "llama")]
pub use rehearsal::{RehearsalError, rehearse};
#[cfg(feature = "llama")]
pub use session::{
    Cancel, DraftRefused, Finish, Generation, Session, SessionError, SessionOptions, SessionStats,
    Speculate,
};
#[cfg(feature = "llama")]
pub use text::chat::{ChatError, ChatMessage, Conversation};
#[cfg(feature = "llama")]
pub use text::constraint::{Constraint, ConstraintError, TextForm};
#[cfg(feature = "llama")]
pub use text::sampling::{BadLogits, Sampling};
#[cfg(feature = "llama")]
pub use text::stream::TextStream;
#[cfg(feature = "llama")]
pub use threads::pools::SharedThreads;
#[cfg(feature = "llama")]
pub use threads::tune::{Tuned, tune};
