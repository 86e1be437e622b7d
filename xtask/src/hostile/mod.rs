//! Thousands of hostile requests against a real server, beside an honest client: what was lost,
//! what the server grew to, and how long the honest client waited. The attacks are those of
//! `motley_testkit::hostile`.
//!
//! * `setting`: what is done to which server.
//! * `honest`: the client that only wants its answers.
//! * `mixed`: every kind of attack at once, beside it.
//! * `runs`: long runs of one class of characters, under each pre-tokenizer in turn.
//! * `pre_tokenizers`: their names, and models rewritten to use them.
//! * `report`: what came of it all, and whether that will do.

mod honest;
mod mixed;
mod pre_tokenizers;
mod report;
mod runs;
mod setting;

pub use pre_tokenizers::NAMES as PRE_TOKENIZERS;
pub use report::{Latency, Mixed, Report, Runs, Tally};
pub use setting::Hostile;

use anyhow::Result;

/// Carries all of it out; `say` is told how it goes.
pub fn run(hostile: &Hostile, say: &mut dyn FnMut(&str)) -> Result<Report> {
    let mixed = mixed::run(hostile, hostile.requests.div_ceil(2), say)?;
    let runs = runs::run(hostile, hostile.requests / 2, say)?;
    Ok(Report { seed: hostile.seed, requests: hostile.requests, mixed, runs })
}
