//! `motley-ggml`: the seam with llama.cpp, as safe Rust. Holds all FFI of the
//! project; holds no policy.
//!
//! Rooms, in reading order:
//! * `seam`: a ggml device that claims the routed-expert block of every layer; each arrives
//!   as an [`ExpertBlock`] at a [`BlockExecutor`].
//! * `compute`: blocks through ggml's kernels on the CPU ([`CpuUnit`]), whole or in parts;
//!   [`cpu`]: what that CPU and its kernels can do.
//! * [`gpu`]: experts in slots of a GPU's memory, and rows computed there.
//! * `api`: ggml's types and the table of its functions; these three rooms reach ggml through
//!   it and nothing else.
//! * [`hosted`]: the seam inside another program's llama.cpp.
//! * `llama`: llama.cpp's own nouns ([`Runtime::start`], [`Model`], [`Context`], [`Sampler`] …).
//! * `system`: what is asked of the operating system, one file for each.
//! * `measure`: synthetic experts and copies, for measuring a machine without a model.

#![allow(clippy::disallowed_methods, reason = "a hand: it may own threads")]
#![cfg_attr(not(feature = "llama"), allow(dead_code, reason = "part of it serves a linked ggml"))]

mod api;
mod compute;
pub mod gpu;
pub mod hosted;
mod layout;
#[cfg(feature = "llama")]
mod llama;
#[cfg(feature = "llama")]
mod measure;
mod seam;
mod system;

pub use compute::{
    BlockWork, CloneError, ComputeOutcome, CpuUnit, Cut, DequantError, DeviceInfo, DeviceType,
    Formula, Gated, NoFormula, ProjectError, Rows, SubsetError, Threadpool, ThreadpoolOptions, Way,
    cpu, dequantise, devices,
};
pub use layout::memory::{ChooseLayout, LayoutError, ReadExpert};
pub use layout::nodes::{NodeShare, Nodes};
pub use layout::stack::prefer_large_pages;
pub use layout::{Layout, MatrixShape};
#[cfg(feature = "llama")]
pub use llama::{
    Batch, BatchToken, Context, ContextError, ContextOptions, DecodeError, InfillTokens, KeepError,
    KeptBlocks, LaidOutSource, LaidOutWeights, LayerGpu, LoadError, LoadProgress, MappedWeights,
    Model, ModelOptions, NoBackends, Parsing, PoolChoice, Pools, ReadCounts, RowsIn, Sampler,
    SamplerStage, StartError, Stays, TextBounds, Thrown, TokenBias, TokenizeError, VirtualFile,
    Weights, exit_now, give_back_freed, versions,
};
#[cfg(feature = "llama")]
pub use measure::{BenchBlock, BenchError, DeviceCopy, ExpertStack, StackSpec};
pub use seam::{
    BlockError, BlockExecutor, Claims, ExpertBlock, ExpertMatrix, NotABlock, Runtime, Seam,
    SeamCounts,
};
