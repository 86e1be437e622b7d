//! Whose step is computed now: models in one process share its cores, and two that computed at once
//! would only wait for each other's threads. First come, first served: a model with much to do gives
//! way to another after every step.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The cores of this process.
pub(super) static CORES: Turns = Turns::new();

/// Turns, taken in the order they were asked for.
pub(super) struct Turns {
    numbers: Mutex<Numbers>,
    passed_on: Condvar,
}

struct Numbers {
    /// Of the next to ask.
    next: u64,
    /// Whose turn it is.
    now: u64,
}

/// A turn; over when dropped.
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    const fn new() -> Self {
        Self { numbers: Mutex::new(Numbers { next: 0, now: 0 }), passed_on: Condvar::new() }
    }

    /// Waits for a turn.
    pub(super) fn take(&self) -> Turn<'_> {
        let mut numbers = self.numbers();
        let own = numbers.next;
        numbers.next += 1;
        while numbers.now != own {
            numbers = self.passed_on.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }

    /// Usable after a panic: nothing panics while it is held.
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.numbers().now += 1;
        self.0.passed_on.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "threads are what is tested")]
    fn turns_are_taken_in_order_and_one_at_a_time() {
        let (turns, said) = (Arc::new(Turns::new()), Arc::new(Mutex::new(Vec::new())));
        let first = turns.take();
        let waiting = [0, 1, 2].map(|number| {
            let (its_turns, said) = (Arc::clone(&turns), Arc::clone(&said));
            let thread = std::thread::spawn(move || {
                let _turn = its_turns.take();
                said.lock().unwrap().push(number);
            });
            // The next asks when this one has.
            while turns.numbers().next < number + 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            thread
        });
        assert!(said.lock().unwrap().is_empty(), "somebody has the turn");
        drop(first);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*said.lock().unwrap(), [0, 1, 2]);
    }
}
