//! Expert bytes for the model: what it asks of them, and reading them on demand through the
//! store's arenas, leases and read queue. The engine's drive loop is to take `OnDemand`'s place.

use crate::events::Events;
use crate::memory::Key;
use motley_engine::batching::ComputeError;
use motley_store::{FilledExpert, Priority, ReadError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// All that the model asks of expert bytes: the seam where a drive loop joins.
pub trait ExpertBlocks {
    /// Brings the bytes of `experts` of `layer` and shows each once, in any order. Other things
    /// may happen meanwhile; what was shown is good only during the call of `show`.
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) -> Result<(), ComputeError>;
}

/// Experts read when they are needed, with guesses for what may come.
pub struct OnDemand {
    events: Rc<RefCell<Events>>,
    guesses_per_mille: u16,
}

impl OnDemand {
    pub(crate) fn new(events: Rc<RefCell<Events>>, guesses_per_mille: u16) -> Self {
        Self { events, guesses_per_mille }
    }

    /// Starts loads as far as slots go; those whose bytes are there already are shown.
    fn start(
        &mut self,
        layer: u16,
        missing: &mut Vec<u16>,
        awaited: &mut BTreeSet<Key>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) {
        let mut events = self.events.borrow_mut();
        while let Some(&expert) = missing.last() {
            let key = (layer, expert);
            if let Some(filled) = events.experts.get(key) {
                show(expert, &filled);
            } else if !events.experts.under_way.contains(&key)
                && !events.experts.load(key, Priority::Demand)
            {
                if events.experts.evict() {
                    continue;
                }
                break;
            } else {
                awaited.insert(key);
            }
            missing.pop();
        }
        events.disk_turn();
    }

    /// The next load that ends; other things happen meanwhile. `None` when none is under way.
    fn wait(&mut self) -> Option<(Key, Result<(), ReadError>)> {
        let mut events = self.events.borrow_mut();
        loop {
            if let Some(completion) = events.experts.reader.poll() {
                return Some(events.experts.land(completion));
            }
            if events.experts.reader.under_way() == 0 || !events.step() {
                return None;
            }
        }
    }

    fn guess(&mut self, layer: u16) {
        let mut events = self.events.borrow_mut();
        if events.rng.u16(..1000) >= self.guesses_per_mille {
            return;
        }
        let (layers, expert) = (events.experts.layers.len() as u16, events.rng.u16(..));
        let next = (layer + 1) % layers;
        let experts = events.experts.layers[usize::from(next)].experts as u16;
        let key = (next, expert % experts);
        let known = events.experts.filled.contains_key(&key);
        if !known && !events.experts.under_way.contains(&key) {
            events.experts.load(key, Priority::Prefetch);
            events.disk_turn();
        }
    }
}

impl ExpertBlocks for OnDemand {
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) -> Result<(), ComputeError> {
        let mut missing: Vec<u16> = experts.iter().copied().collect();
        let mut awaited = BTreeSet::new();
        loop {
            self.start(layer, &mut missing, &mut awaited, show);
            if missing.is_empty() && awaited.is_empty() {
                self.guess(layer);
                return Ok(());
            }
            let Some((key, outcome)) = self.wait() else {
                let reason = "waits for a read that never ends".to_owned();
                self.events.borrow_mut().broken(|| reason.clone());
                return Err(ComputeError { reason, model_changed: false, cache_lost: false });
            };
            if !awaited.remove(&key) {
                continue;
            }
            match outcome {
                // Shown at once: a resize may take it away again.
                Ok(()) => missing.push(key.1),
                Err(error) => {
                    let model_changed = matches!(error, ReadError::Changed { .. });
                    let reason = error.to_string();
                    return Err(ComputeError { reason, model_changed, cache_lost: false });
                }
            }
        }
    }
}
