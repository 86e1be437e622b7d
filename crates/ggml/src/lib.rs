//! `motley-ggml`: the seam with llama.cpp, as safe Rust. Holds all FFI of the
//! project; holds no policy.
//!
//! Modules, in reading order:
//! * [`block`]: the routed-expert block of one layer as a typed value.
//! * `claim`: which operations of a graph belong to a block.
//! * `device`: the ggml device that claims them; `abi` mirrors ggml's tables.
//! * [`backend`]: receives blocks and hands them to a [`BlockExecutor`].
//! * [`subset`]: a block computed from arena slots, whole or in parts; `clone` copies a
//!   block's operations for packed rows, `packed` runs them here, `graph` holds them.
//! * [`gpu`]: experts in slots of a GPU's memory, and rows computed there.
//! * [`between`]: a block's formula, for units that are not ggml; [`dequant`]: its weights.
//! * [`project`]: a small matrix times the hidden rows, for router scores.
//! * `reserve`: expert weights as address space without bytes; `shelf`: their device,
//!   met by the loader only. `tensors`: ggml's tensors and memory as owned values.
//! * [`bench`](mod@bench): made experts without a model, for measuring; [`copy`]: copies to a device;
//!   [`split`]: one expert over several groups of cores.
//! * [`vfile`]: the virtual file llama.cpp loads from.
//! * [`runtime`], [`model`], [`context`], [`batch`], [`sampler`], [`grammar`],
//!   [`threadpool`]: llama.cpp's own nouns; [`cpu`]: its CPU backend;
//!   [`devices`](mod@devices): all it can compute on; `log`: its log.

#![allow(clippy::disallowed_methods, reason = "a hand: it may own threads")]

mod abi;
mod affinity;
pub mod backend;
pub mod batch;
pub mod bench;
pub mod between;
pub mod block;
mod claim;
mod clone;
pub mod context;
pub mod copy;
pub mod cpu;
pub mod dequant;
mod device;
pub mod devices;
pub mod gpu;
pub mod grammar;
mod graph;
mod log;
mod made;
pub mod model;
mod packed;
pub mod project;
mod reserve;
pub mod runtime;
pub mod sampler;
mod shelf;
pub mod split;
pub mod subset;
mod tensors;
pub mod threadpool;
pub mod vfile;

pub use backend::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, SeamCounts};
pub use batch::{Batch, BatchToken};
pub use bench::{BenchBlock, BenchError, ExpertStack, Layout, StackSpec};
pub use between::{Formula, Gated, NoFormula};
pub use block::{ExpertBlock, ExpertMatrix, NotABlock};
pub use clone::CloneError;
pub use context::{Context, ContextError, ContextOptions, DecodeError, PoolChoice, Pools};
pub use copy::DeviceCopy;
pub use dequant::{DequantError, dequantise};
pub use devices::{DeviceInfo, DeviceType, devices};
pub use grammar::{Grammar, GrammarError, schema_grammar};
pub use model::{LayerGpu, LoadError, Model, ModelOptions, Weights};
pub use project::{ProjectError, Rows};
pub use runtime::{Runtime, Seam, SeamConflict};
pub use sampler::{Sampler, SamplerStage};
pub use split::SplitBlock;
pub use subset::SubsetError;
pub use threadpool::{Threadpool, ThreadpoolOptions};
pub use vfile::{ReadCounts, VirtualFile};
