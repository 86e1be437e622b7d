//! Repeating something within a slice of time, and saying how far the whole is.

use std::time::{Duration, Instant};

/// Least repetitions for a median, when one fits the slice at all.
const LEAST: usize = 3;
/// Most: beyond it the median stands.
const MOST: usize = 400;

/// Median time of `run` in microseconds over as many repetitions as fit `slice`; one when a
/// single run takes longer than that. `before` runs outside the measured time.
pub(crate) fn median_us(slice: Duration, mut before: impl FnMut(), mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        before();
        let begin = Instant::now();
        run();
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        let over = start.elapsed() >= slice;
        let long = start.elapsed() >= 2 * slice;
        if long || over && times.len() >= LEAST || times.len() >= MOST {
            break;
        }
    }
    median(&mut times)
}

/// The middle value; the upper of two.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// How far the whole is, told as parts go on.
pub struct Steps<'a> {
    told: &'a mut dyn FnMut(&str, f64),
    from: f64,
    share: f64,
}

impl<'a> Steps<'a> {
    /// Tells `told` (what, share of the whole).
    pub fn new(told: &'a mut dyn FnMut(&str, f64)) -> Self {
        Self { told, from: 0.0, share: 1.0 }
    }

    /// A part of the whole begins: where, and how large.
    pub fn part(&mut self, from: f64, share: f64) {
        (self.from, self.share) = (from, share);
    }

    /// `done` of `all` steps of the part are over; `what` is next.
    pub fn tell(&mut self, what: &str, done: usize, all: usize) {
        let share = done as f64 / all.max(1) as f64;
        (self.told)(what, (self.from + self.share * share).min(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_within_the_slice_and_once_beyond_it() {
        let (mut before, mut runs) = (0, 0);
        let us = median_us(
            Duration::from_millis(5),
            || before += 1,
            || {
                runs += 1;
                std::thread::sleep(Duration::from_micros(300));
            },
        );
        assert!(runs >= LEAST && before == runs, "{runs}");
        assert!(us >= 300.0, "{us}");
        let mut runs = 0;
        median_us(
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
    fn steps_of_parts_make_a_whole() {
        let mut seen = Vec::new();
        let mut told = |_: &str, share: f64| seen.push(share);
        let mut steps = Steps::new(&mut told);
        steps.part(0.5, 0.5);
        steps.tell("a", 0, 2);
        steps.tell("b", 1, 2);
        steps.tell("c", 2, 2);
        assert_eq!(seen, [0.5, 0.75, 1.0]);
    }
}
