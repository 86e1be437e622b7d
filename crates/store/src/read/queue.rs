//! The order of waiting requests: demand before prefetch, each first come, first served.
//! Holds numbers only; knows nothing of disks.

use std::collections::VecDeque;

/// How urgent a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody waits for it.
    Demand,
    /// A guess; served when no demand is waiting.
    Prefetch,
}

/// Two lines of waiting items.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    demand: VecDeque<T>,
    prefetch: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { demand: VecDeque::new(), prefetch: VecDeque::new() }
    }
}

impl<T: Copy + PartialEq> Queue<T> {
    pub(crate) fn push(&mut self, item: T, priority: Priority) {
        self.line(priority).push_back(item);
    }

    /// Who is served next; stays in line until removed.
    pub(crate) fn first(&self) -> Option<T> {
        self.demand.front().or(self.prefetch.front()).copied()
    }

    /// Takes an item out of whichever line it stands in.
    pub(crate) fn remove(&mut self, item: T) -> bool {
        [Priority::Demand, Priority::Prefetch].into_iter().any(|priority| {
            let line = self.line(priority);
            let place = line.iter().position(|other| *other == item);
            place.is_some_and(|place| line.remove(place).is_some())
        })
    }

    /// Moves a prefetch to the end of the demand line.
    pub(crate) fn promote(&mut self, item: T) {
        if let Some(place) = self.prefetch.iter().position(|other| *other == item) {
            self.prefetch.remove(place);
            self.demand.push_back(item);
        }
    }

    fn line(&mut self, priority: Priority) -> &mut VecDeque<T> {
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

    fn drain(queue: &mut Queue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.first().inspect(|&item| assert!(queue.remove(item)))).collect()
    }

    #[test]
    fn demand_goes_first_and_a_promoted_prefetch_joins_its_end() {
        let mut queue = Queue::default();
        for (item, priority) in
            [(1, Priority::Prefetch), (2, Priority::Demand), (3, Priority::Prefetch)]
        {
            queue.push(item, priority);
        }
        queue.promote(3);
        queue.push(4, Priority::Demand);
        assert_eq!(drain(&mut queue), [2, 3, 4, 1]);
    }

    proptest! {
        #[test]
        fn everything_comes_out_once_in_order(demands in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut queue = Queue::default();
            for (item, &demand) in (0u32..).zip(&demands) {
                queue.push(item, if demand { Priority::Demand } else { Priority::Prefetch });
            }
            let of = |wanted: bool| (0u32..).zip(&demands).filter(move |(_, d)| **d == wanted);
            let expected: Vec<u32> = of(true).chain(of(false)).map(|(item, _)| item).collect();
            prop_assert_eq!(drain(&mut queue), expected);
        }
    }
}
