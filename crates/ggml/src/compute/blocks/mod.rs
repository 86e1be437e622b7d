//! A block computed expert by expert (W2): the rows of one expert gathered, multiplied as one
//! matrix, put in their places. A plain `MUL_MAT` reaches ggml's matrix-matrix kernels, which
//! `MUL_MAT_ID` never does, and works in layouts that have no other way.
//!
//! Modules, in reading order:
//! * `jobs`: rows grouped by expert, in pieces; `spread`: over threads or through all of them;
//!   `lines`: which thread takes which.
//! * `template`: a block's operations for one piece; `worker`: one thread's, with what it took.
//! * `run`: all pieces on the threads of a pool.

mod jobs;
mod lines;
mod run;
mod spread;
mod template;
mod worker;

pub(crate) use run::Blocks;
pub use worker::BlockWork;

/// How the rows of a block are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One `MUL_MAT_ID` over all rows, as llama.cpp has it.
    Whole,
    /// One `MUL_MAT` for each expert's rows.
    Blocks {
        /// Rows of one product, about: an expert with twice as many has several.
        block_rows: u32,
    },
}

impl Way {
    /// Blocks of any size, for those that have no other way.
    pub(crate) fn block_rows(self) -> u32 {
        match self {
            Self::Whole => u32::MAX,
            Self::Blocks { block_rows } => block_rows,
        }
    }
}
