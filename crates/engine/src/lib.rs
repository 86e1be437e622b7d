//! `motley-engine`: runs a model in real time. Two nouns at the door: an
//! [`Engine`] is a loaded model, a [`Session`] is one timeline on it.
//!
//! Modules, in reading order:
//! * [`engine`]: loading, vocabulary, sessions; [`weights`]: where weights come from.
//! * [`rehearsal`]: a header tried with everything but the weights.
//! * [`execute`]: a decision as the engine's options.
//! * [`streams`]: several streams decoded together, for measuring.
//! * [`session`]: chunked prefill (N7), decode, generation, cancellation.
//! * `chunk`: how long the chunks of a prompt are.
//! * [`batching`]: many answers at once on one context.
//! * [`blocks`]: what happens to each routed-expert block: in memory, streamed, with devices.
//! * [`threads`]: which threads compute.
//! * [`text`]: between text and tokens.
//! * [`energy`]: joules of what is computed, by meter or by model (M7).
//! * [`eval`]: perplexity and multiple choice, with intervals.
//! * [`clock`]: the wall clock, or a simulation's. `sync`: what threads wait with.

#![forbid(unsafe_code)]

pub mod batching;
pub mod blocks;
mod chunk;
pub mod clock;
pub mod energy;
pub mod engine;
pub mod eval;
pub mod execute;
pub mod rehearsal;
pub mod session;
pub mod streams;
mod sync;
pub mod text;
pub mod threads;
pub mod weights;

pub use batching::{BatchFigures, BatchOptions, Batching, SubmitError};
pub use blocks::figures::StreamFigures;
pub use blocks::machine::{
    DeviceOptions, DeviceRoom, MachineFigures, MachineHandle, MachineReport,
};
pub use blocks::options::StreamingOptions;
pub use blocks::predict::PredictionAccuracy;
pub use blocks::pressure::machine_memory;
pub use blocks::routing::{RoutedBlock, RoutingWatcher};
pub use chunk::chunk_for;
pub use energy::{EnergyCounter, EnergyWatch, Joules};
pub use engine::{Engine, EngineError, EngineOptions};
pub use motley_ggml::gpu::{GpuDevice, gpu_devices};
pub use motley_ggml::{
    LayerGpu, Runtime, Seam, StartError, TokenBias, TokenizeError, cpu::unused_cpu_level, versions,
};
pub use motley_host::{load, process_memory, sandbox};
pub use motley_plan::Loading;
pub use motley_plan::cores::{MachineCores, ThreadSet, ThreadSets};
pub use motley_sched::cache::PolicyChoice;
pub use motley_sched::prefetch::PrefetchChoice;
pub use motley_sched::{Phase, admission, models};
pub use motley_store::FaultPlan;
pub use rehearsal::{RehearsalError, rehearse};
pub use session::{
    Cancel, Finish, Generation, Session, SessionError, SessionOptions, SessionStats,
};
pub use text::chat::{ChatError, ChatMessage, Conversation};
pub use text::constraint::{Constraint, ConstraintError, TextForm};
pub use text::sampling::{BadLogits, Sampling};
pub use text::stream::TextStream;
pub use threads::tune::{Tuned, tune};
