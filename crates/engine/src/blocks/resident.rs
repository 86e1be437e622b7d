//! Which experts are in memory, as one bit each: written by the one thread that brings and
//! releases them, read by whoever shows them. A reader may see a change late, never half.

use motley_trace::ExpertKey;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORD_BITS: usize = u64::BITS as usize;

/// Bits `[layers][experts]`, each layer in words of its own.
#[derive(Debug)]
pub struct ResidentExperts {
    experts: usize,
    words_per_layer: usize,
    words: Vec<AtomicU64>,
}

impl ResidentExperts {
    pub(crate) fn new(layers: usize, experts: usize) -> Self {
        let words_per_layer = experts.div_ceil(WORD_BITS);
        let words = (0..layers * words_per_layer).map(|_| AtomicU64::new(0)).collect();
        Self { experts, words_per_layer, words }
    }

    /// Notes where an expert is now; unknown ones are ignored.
    pub(crate) fn set(&self, key: ExpertKey, present: bool) {
        let Some((word, bit)) = self.place(usize::from(key.layer), usize::from(key.expert)) else {
            return;
        };
        match present {
            true => word.fetch_or(bit, Relaxed),
            false => word.fetch_and(!bit, Relaxed),
        };
    }

    /// Whether each expert of `layer` is in memory, in order.
    pub fn layer(&self, layer: usize) -> impl Iterator<Item = bool> {
        let present = move |expert| {
            self.place(layer, expert).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
        };
        (0..self.experts).map(present)
    }

    /// How many experts are in memory.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.load(Relaxed).count_ones() as usize).sum()
    }

    fn place(&self, layer: usize, expert: usize) -> Option<(&AtomicU64, u64)> {
        if expert >= self.experts {
            return None;
        }
        let word = self.words.get(layer * self.words_per_layer + expert / WORD_BITS)?;
        Some((word, 1 << (expert % WORD_BITS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_come_and_go() {
        let resident = ResidentExperts::new(3, 130);
        for (layer, expert) in [(0, 0), (2, 129), (2, 64), (2, 64)] {
            resident.set(ExpertKey::new(layer, expert), true);
        }
        resident.set(ExpertKey::new(0, 0), false);
        let of = |layer| resident.layer(layer).enumerate().filter(|(_, here)| *here);
        assert_eq!(of(2).map(|(expert, _)| expert).collect::<Vec<_>>(), [64, 129]);
        assert_eq!((of(0).count(), resident.count(), resident.layer(1).count()), (0, 2, 130));
    }

    #[test]
    fn what_the_model_has_not_is_ignored() {
        let resident = ResidentExperts::new(1, 4);
        resident.set(ExpertKey::new(0, 4), true);
        resident.set(ExpertKey::new(7, 0), true);
        assert_eq!(resident.count(), 0);
        assert_eq!(resident.layer(9).filter(|here| *here).count(), 0);
    }
}
