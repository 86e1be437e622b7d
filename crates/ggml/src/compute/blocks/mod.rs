//! A block computed expert by expert (W2): the rows of one expert gathered, multiplied as one
//! matrix, put in their places. A plain `MUL_MAT` reaches ggml's matrix-matrix kernels, which
//! `MUL_MAT_ID` never does, and works in layouts that have no other way.
//!
//! Modules, in reading order:
//! * `jobs`: rows grouped by expert, in pieces; `spread`: over threads or through all of them;
//!   `lines`: which thread takes which.
//! * `template`: a block's operations for one piece; `scratch`: an expert rearranged for the time
//!   of a piece; `worker`: one thread's, with what it took.
//! * `run`: all pieces on the threads of a pool.

mod jobs;
mod lines;
mod run;
mod scratch;
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
    Blocks(Cut),
}

/// How the rows of one expert are divided, and from how many on its weights are rearranged first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Rows of one product, about: an expert with twice as many has several.
    pub block_rows: u32,
    /// Weights in the file's order are rearranged for the CPU's kernels, each time anew, where a
    /// block has so many rows for the expert; `None` for never.
    pub rearrange_from: Option<u32>,
}

impl Cut {
    /// Products of about `block_rows` rows, of weights as they lie.
    pub fn of(block_rows: u32) -> Self {
        Self { block_rows, rearrange_from: None }
    }
}

impl Way {
    /// Blocks of any size, for those that have no other way.
    pub(crate) fn cut(self) -> Cut {
        match self {
            Self::Whole => Cut::of(u32::MAX),
            Self::Blocks(cut) => cut,
        }
    }
}
