//! The order of waiting requests: demand before prefetch, each first come, first served.
//! Holds identifiers only; the requests themselves are in `queue`.

use std::collections::VecDeque;

/// How urgent a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The caller waits for it.
    Demand,
    /// A prediction; read when no demand is waiting.
    Prefetch,
}

/// Two queues in one: demand, then prefetch.
#[derive(Debug)]
pub(crate) struct PriorityQueue<T> {
    demand: VecDeque<T>,
    prefetch: VecDeque<T>,
}

impl<T> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self { demand: VecDeque::new(), prefetch: VecDeque::new() }
    }
}

impl<T: Copy + PartialEq> PriorityQueue<T> {
    pub(crate) fn push(&mut self, item: T, priority: Priority) {
        self.queue(priority).push_back(item);
    }

    /// The next item; it stays in the queue until removed.
    pub(crate) fn first(&self) -> Option<T> {
        self.demand.front().or(self.prefetch.front()).copied()
    }

    /// Removes an item, whatever its priority.
    pub(crate) fn remove(&mut self, item: T) -> bool {
        [Priority::Demand, Priority::Prefetch].into_iter().any(|priority| {
            let queue = self.queue(priority);
            let place = queue.iter().position(|other| *other == item);
            place.is_some_and(|place| queue.remove(place).is_some())
        })
    }

    fn queue(&mut self, priority: Priority) -> &mut VecDeque<T> {
        match priority {
            Priority::Demand => &mut self.demand,
            Priority::Prefetch => &mut self.prefetch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(queue: &mut PriorityQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.first().inspect(|&item| assert!(queue.remove(item)))).collect()
    }

    proptest! {
        #[test]
        fn everything_comes_out_once_in_order(demands in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut queue = PriorityQueue::default();
            for (item, &demand) in (0u32..).zip(&demands) {
                queue.push(item, if demand { Priority::Demand } else { Priority::Prefetch });
            }
            let of = |wanted: bool| (0u32..).zip(&demands).filter(move |(_, d)| **d == wanted);
            let expected: Vec<u32> = of(true).chain(of(false)).map(|(item, _)| item).collect();
            prop_assert_eq!(drain(&mut queue), expected);
        }
    }
}
