//! Which experts are in memory, as one bit each: written by the one thread that brings and
//! releases them, read by whoever shows them. A reader may see a change late, never half.

use motley_trace::ExpertKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORD_BITS: usize = u64::BITS as usize;

/// Bits `[layers][experts]` of one memory, each layer in words of its own.
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

    fn has(&self, layer: usize, expert: usize) -> bool {
        self.place(layer, expert).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
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

/// Where experts are, of all memories that hold some.
#[derive(Debug, Clone)]
pub struct ExpertPlaces {
    /// In memory, where they are read from disk; else all are.
    pub(crate) memory: Option<Arc<ResidentExperts>>,
    /// On each device that shares them.
    pub(crate) devices: Vec<Arc<ResidentExperts>>,
}

/// Where an expert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpertPlace {
    Disk,
    Memory,
    Device,
    MemoryAndDevice,
}

impl ExpertPlaces {
    /// Whether experts are read from disk.
    pub fn from_disk(&self) -> bool {
        self.memory.is_some()
    }

    /// Whether devices share them.
    pub fn on_devices(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Where each of `experts` experts of `layer` is, in order.
    pub fn layer(&self, layer: usize, experts: usize) -> impl Iterator<Item = ExpertPlace> {
        let has = move |held: &ResidentExperts, expert| held.has(layer, expert);
        (0..experts).map(move |expert| {
            let in_memory = self.memory.as_ref().is_none_or(|memory| has(memory, expert));
            let on_device = self.devices.iter().any(|device| has(device, expert));
            match (in_memory, on_device) {
                (true, true) => ExpertPlace::MemoryAndDevice,
                (true, false) => ExpertPlace::Memory,
                (false, true) => ExpertPlace::Device,
                (false, false) => ExpertPlace::Disk,
            }
        })
    }

    /// How many are in memory; `None` when all are.
    pub fn in_memory(&self) -> Option<usize> {
        self.memory.as_ref().map(|memory| memory.count())
    }

    /// How many are on devices, over all of them.
    pub fn in_devices(&self) -> usize {
        self.devices.iter().map(|device| device.count()).sum()
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
        let of = |layer| (0..130).filter(|&expert| resident.has(layer, expert)).collect();
        let (none, two): (Vec<usize>, Vec<usize>) = (of(0), of(2));
        assert_eq!((none.len(), two, resident.count()), (0, vec![64, 129], 2));
    }

    #[test]
    fn an_expert_is_in_any_of_four_places() {
        let held = |experts: &[u16]| {
            let resident = ResidentExperts::new(1, 4);
            experts.iter().for_each(|&expert| resident.set(ExpertKey::new(0, expert), true));
            Arc::new(resident)
        };
        let devices = vec![held(&[2]), held(&[3])];
        let places = ExpertPlaces { memory: Some(held(&[1, 3])), devices };
        use ExpertPlace::{Device, Disk, Memory, MemoryAndDevice};
        let found: Vec<ExpertPlace> = places.layer(0, 4).collect();
        assert_eq!(found, [Disk, Memory, Device, MemoryAndDevice]);
        assert_eq!((places.in_memory(), places.in_devices()), (Some(2), 2));
    }

    #[test]
    fn what_the_model_has_not_is_ignored() {
        let resident = ResidentExperts::new(1, 4);
        resident.set(ExpertKey::new(0, 4), true);
        resident.set(ExpertKey::new(7, 0), true);
        assert_eq!(resident.count(), 0);
        assert!(!resident.has(9, 0));
    }
}
