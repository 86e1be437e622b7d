//! Repeating something within a slice of time, and saying how far the whole is.
//!
//! Of the repetitions a low one counts, not the middle one: other work can only make a run
//! longer, and ggml's threads wait for each other, so a single interruption costs all of them.

use motley_cost::statistics::quantile;
use std::time::{Duration, Instant};

/// Least repetitions, when one fits the slice at all.
const LEAST: usize = 3;
/// Most: more say nothing new.
const MOST: usize = 400;

/// Part of the repetitions that were faster than the one that counts.
const LOW: f64 = 0.2;

/// Time of an undisturbed `run` in microseconds, out of as many repetitions as fit `slice`; of
/// the only one when a single run takes longer. `before` runs outside the measured time.
pub(crate) fn undisturbed_us(
    slice: Duration,
    mut before: impl FnMut(),
    mut run: impl FnMut(),
) -> f64 {
    let start = Instant::now();
    let mut times = Vec::new();
    // An interrupted run says nothing about how long one takes; the shortest does.
    let mut shortest = Duration::MAX;
    loop {
        before();
        let begin = Instant::now();
        run();
        let took = begin.elapsed();
        times.push(took.as_secs_f64() * 1e6);
        shortest = shortest.min(took);
        let over = start.elapsed() >= slice;
        let long = shortest >= slice / 2;
        if over && (long || times.len() >= LEAST) || times.len() >= MOST {
            break;
        }
    }
    quantile(&times, LOW).unwrap_or(0.0)
}

/// How far the whole is, reported as parts go on.
pub(crate) struct Steps<'a> {
    on_progress: &'a mut dyn FnMut(&str, f64),
    from: f64,
    share: f64,
}

impl<'a> Steps<'a> {
    /// Reports to `on_progress` (what, share of the whole).
    pub(crate) fn new(on_progress: &'a mut dyn FnMut(&str, f64)) -> Self {
        Self { on_progress, from: 0.0, share: 1.0 }
    }

    /// A part of the whole begins: where, and how large.
    pub(crate) fn part(&mut self, from: f64, share: f64) {
        (self.from, self.share) = (from, share);
    }

    /// `done` of `all` steps of the part are over; `what` is next.
    pub(crate) fn report(&mut self, what: &str, done: usize, all: usize) {
        let share = done as f64 / all.max(1) as f64;
        (self.on_progress)(what, (self.from + self.share * share).min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_within_the_slice_and_once_beyond_it() {
        let (mut before, mut runs) = (0, 0);
        let us = undisturbed_us(
            Duration::from_millis(50),
            || before += 1,
            || {
                runs += 1;
                std::thread::sleep(Duration::from_micros(300));
            },
        );
        assert!(runs >= LEAST && before == runs, "{runs}");
        assert!(us >= 300.0, "{us}");
        let mut runs = 0;
        undisturbed_us(
            Duration::from_micros(10),
            || (),
            || {
                runs += 1;
                std::thread::sleep(Duration::from_millis(2));
            },
        );
        assert_eq!(runs, 1);
    }

    #[test]
    fn a_few_interruptions_do_not_count() {
        let times = [900.0, 101.0, 100.0, 102.0, 800.0, 103.0, 700.0];
        let low = quantile(&times, LOW).unwrap();
        assert!((low - 101.2).abs() < 1e-9, "a fifth of the way from 101 to 102: {low}");
    }

    #[test]
    fn steps_of_parts_make_a_whole() {
        let mut seen = Vec::new();
        let mut on_progress = |_: &str, share: f64| seen.push(share);
        let mut steps = Steps::new(&mut on_progress);
        steps.part(0.5, 0.5);
        steps.report("a", 0, 2);
        steps.report("b", 1, 2);
        steps.report("c", 2, 2);
        assert_eq!(seen, [0.5, 0.75, 1.0]);
    }
}
