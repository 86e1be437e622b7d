//! Measures choices of cores on a live session for a search of `plan::cores` (A2, A4): decodes a
//! stretch of tokens on each and reports speed and energy. Measures; the search chooses.
//!
//! Each choice decodes the same tokens from the same place in the same KV cache, in a few short
//! runs of which the fastest counts: other work can only lengthen a run. Energy is of all runs.

use crate::clock::now;
use crate::energy::EnergyWatch;
use crate::session::{Session, SessionError};
use motley_host::pressure;
use motley_plan::cores::{CoreSearch, CoreSet, MachineCores, Measurement, Selection, ThreadSets};
use std::path::Path;

/// Runs per choice.
const RUNS: u32 = 3;
/// Tokens per run: with three runs the 50 tokens of A2.
const RUN_TOKENS: u32 = 17;
/// Tokens after which a choice this much slower than the best so far is given up: its speed is
/// known well enough, and the user waits.
const GIVE_UP: (u32, f64) = (4, 4.0);
/// Share of the time in which tasks waited for a core, from which others were at work.
const CONTENDED_SHARE: f64 = 0.3;

/// What tuning found.
#[derive(Debug, Clone)]
pub struct Tuned {
    pub selection: Selection,
    /// Every choice that was measured, in order; the search compares only some in the end.
    pub measured: Vec<(CoreSet, Measurement)>,
    /// Threads of the choice, and all considered cores for prompts (A5).
    pub sets: ThreadSets,
    /// Name of the energy meter; `None` when the heuristic decided alone.
    pub meter: Option<String>,
    /// Whether other work was on the cores.
    pub contended: bool,
    pub took_s: f64,
}

/// Carries `search` out on `session`, which must have computed a prompt; `on_progress` is called with each
/// choice before it is measured, with the number of those done.
pub fn tune(
    session: &mut Session,
    cores: &MachineCores,
    search: &mut dyn CoreSearch,
    on_progress: &mut dyn FnMut(&CoreSet, usize),
) -> Result<Option<Tuned>, SessionError> {
    let begun = now();
    let waited = pressure::cpu_some_total_us(Path::new("/"));
    let mut bench = Bench::new(session, cores);
    // Experts come into memory, and caches warm up.
    bench.run(RUN_TOKENS)?;
    let mut measured = Vec::new();
    while let Some(set) = search.next_to_measure().cloned() {
        on_progress(&set, measured.len());
        let found = bench.measure(&set)?;
        search.report(found);
        measured.push((set, found));
    }
    let took_s = begun.elapsed().as_secs_f64();
    let meter = bench.session.energy.meter_names().map(str::to_owned);
    Ok(search.selection().map(|selection| Tuned {
        sets: ThreadSets {
            prefill: cores.threads(&cores.pool.all_considered()),
            decode: cores.threads(&selection.chosen),
        },
        meter: meter.filter(|_| selection.energy_measured),
        contended: share_since(waited, took_s).is_some_and(|share| share > CONTENDED_SHARE),
        selection,
        measured,
        took_s,
    }))
}

/// One session on which choices are measured.
struct Bench<'a> {
    session: &'a mut Session,
    cores: &'a MachineCores,
    position: u32,
    /// The token the prompt is continued with, so that every run decodes the same.
    first: i32,
    fastest: f64,
}

impl<'a> Bench<'a> {
    fn new(session: &'a mut Session, cores: &'a MachineCores) -> Self {
        session.keep_threads();
        session.energy = EnergyWatch::by_meters(Path::new("/"), false);
        let (position, first) = (session.len(), likeliest(session.logits()));
        Self { session, cores, position, first, fastest: 0.0 }
    }

    fn measure(&mut self, set: &CoreSet) -> Result<Measurement, SessionError> {
        let prefill = self.cores.threads(&self.cores.pool.all_considered());
        self.session.set_threads(&ThreadSets { prefill, decode: self.cores.threads(set) })?;
        // Threads wake up on a token that does not count.
        self.run(1)?;
        let before = self.session.energy.metered_joules();
        let mut best = 0.0_f64;
        let mut tokens = 0;
        for _ in 0..RUNS {
            let (decoded, speed) = self.run(RUN_TOKENS)?;
            best = best.max(speed);
            tokens += decoded;
            if decoded < RUN_TOKENS {
                break;
            }
        }
        self.fastest = self.fastest.max(best);
        let joules = self.session.energy.metered_joules().zip(before);
        let joules_per_token = joules.map(|(now, then)| (now - then) / f64::from(tokens.max(1)));
        Ok(Measurement { tokens_per_s: best, joules_per_token })
    }

    /// Decodes the likeliest tokens from the same place on; tokens decoded and their speed.
    fn run(&mut self, tokens: u32) -> Result<(u32, f64), SessionError> {
        let start = now();
        let mut token = self.first;
        let mut decoded = 0;
        let mut speed = 0.0;
        while decoded < tokens {
            self.session.decode(token)?;
            decoded += 1;
            token = likeliest(self.session.logits());
            speed = f64::from(decoded) / start.elapsed().as_secs_f64().max(1e-9);
            if decoded >= GIVE_UP.0 && speed * GIVE_UP.1 < self.fastest {
                break;
            }
        }
        self.rewind();
        Ok((decoded, speed))
    }

    /// Back to where the prompt ended. A memory that cannot be cut (recurrent state) goes on
    /// from where it is, and begins anew when the context is full.
    fn rewind(&mut self) {
        let context = self.session.options().context_tokens;
        if !self.session.truncate(self.position) && self.session.len() + RUN_TOKENS >= context {
            self.session.clear();
        }
    }
}

fn likeliest(logits: &[f32]) -> i32 {
    let best = logits.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map_or(0, |(token, _)| token as i32)
}

fn share_since(before: Option<u64>, seconds: f64) -> Option<f64> {
    let now = pressure::cpu_some_total_us(Path::new("/"))?;
    Some(now.saturating_sub(before?) as f64 / 1e6 / seconds.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_token_is_the_largest_logit() {
        assert_eq!(likeliest(&[0.1, f32::NEG_INFINITY, 3.0, 2.0]), 2);
        assert_eq!(likeliest(&[]), 0);
    }
}
