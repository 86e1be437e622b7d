//! Whether each thread takes pieces of its own, or all threads share every piece. The first has
//! no barrier inside, the second leaves no thread without work. Numbers in, a choice out.

/// How pieces meet threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// A piece per thread, the next one when it is done.
    Apart,
    /// Every piece by all threads, rows of the weights divided among them.
    Together,
}

/// Least part of the threads' time that pieces apart must fill. Below it barriers are cheaper.
const LEAST_FILLED: f64 = 0.8;
/// With so many pieces for each thread the last ones matter little.
const MANY: usize = 8;

/// The choice for pieces of these sizes, largest first.
pub(super) fn spread(sizes: impl ExactSizeIterator<Item = usize>, threads: usize) -> Spread {
    if threads <= 1 || sizes.len() >= MANY * threads {
        return Spread::Apart;
    }
    if sizes.len() < threads {
        return Spread::Together;
    }
    let mut busy = vec![0_usize; threads];
    let mut sum = 0;
    for size in sizes {
        // Whoever is done first takes the next. Weights are read whatever the rows: never free.
        let next = busy.iter_mut().min().expect("at least two threads");
        *next += size;
        sum += size;
    }
    let longest = busy.into_iter().max().unwrap_or(0);
    let filled = sum as f64 / (threads * longest.max(1)) as f64;
    if filled >= LEAST_FILLED { Spread::Apart } else { Spread::Together }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_kept_busy() {
        let of = |sizes: &[usize], threads| spread(sizes.iter().copied(), threads);
        assert_eq!(of(&[1; 8], 2), Spread::Apart, "one token on two cores");
        assert_eq!(of(&[1; 8], 4), Spread::Apart);
        assert_eq!(of(&[1; 8], 6), Spread::Together, "four threads would wait for two");
        assert_eq!(of(&[1; 8], 16), Spread::Together, "half would have nothing");
        assert_eq!(of(&[1; 3], 2), Spread::Together);
        assert_eq!(of(&[64, 8, 8, 4], 2), Spread::Together, "one expert is most of it");
        assert_eq!(of(&[32; 128], 16), Spread::Apart);
        assert_eq!(of(&[1], 1), Spread::Apart);
    }
}
