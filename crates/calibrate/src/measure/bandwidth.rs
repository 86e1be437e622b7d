//! Reading memory with several threads at once: an upper bound for experts that lie in it.

use std::hint::black_box;
use std::time::Duration;

use motley_cost::calibration::MemoryRate;
use motley_ggml::prefer_large_pages;

use super::clock::{Steps, undisturbed_us};

/// The rate for each number of threads, over a buffer of `size_bytes` that no cache holds.
pub(super) fn measure(
    counts: &[u32],
    size_bytes: u64,
    slice: Duration,
    steps: &mut Steps<'_>,
) -> Vec<MemoryRate> {
    let words = words(size_bytes as usize / size_of::<u64>());
    let each = slice / counts.len().max(1) as u32;
    let mut rates = Vec::new();
    for (done, &threads) in counts.iter().enumerate() {
        steps.report(&format!("memory, {threads} threads"), done, counts.len());
        let us = undisturbed_us(each, || (), || pass(&words, threads as usize));
        rates.push(MemoryRate { threads, gb_per_s: size_bytes as f64 * 1e-3 / us });
    }
    rates
}

/// In large pages, as experts lie in memory.
fn words(count: usize) -> Vec<u64> {
    let mut words: Vec<u64> = Vec::with_capacity(count);
    prefer_large_pages(words.as_mut_ptr().cast(), count * size_of::<u64>());
    words.resize(count, 1);
    words
}

/// Every thread sums its piece.
fn pass(words: &[u64], threads: usize) {
    let piece = words.len().div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        for words in words.chunks(piece.max(1)) {
            scope.spawn(move || black_box(sum(words)));
        }
    });
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_a_memory() {
        let mut quiet = |_: &str, _: f64| {};
        let mut steps = Steps::new(&mut quiet);
        let rates = measure(&[1, 2], 16 << 20, Duration::from_millis(40), &mut steps);
        assert_eq!(rates.iter().map(|rate| rate.threads).collect::<Vec<_>>(), [1, 2]);
        // Between a very slow and an impossible memory.
        assert!(rates.iter().all(|rate| (0.2..10_000.0).contains(&rate.gb_per_s)), "{rates:?}");
    }
}
