//! A few things done at once, results in order; the first failure ends the rest. Knows no files.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Tells work that goes on that it is no longer wanted.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Does `work` for every item, at most `threads` at once.
pub(crate) fn each<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, &Stop) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, stop) = (AtomicUsize::new(0), Stop::default());
    let first_error = Mutex::new(None);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while !stop.is_set() {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(item) = items.get(index) else { return };
                    match work(item, &stop) {
                        Ok(result) => lock(&done).push((index, result)),
                        Err(error) => {
                            // What others say once they were stopped is not why.
                            if !stop.0.swap(true, Relaxed) {
                                *lock(&first_error) = Some(error);
                            }
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&first_error).take() {
        return Err(error);
    }
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_and_a_failure_ends_the_rest() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = each(&items, 7, |n, _| Ok::<_, ()>(2 * n)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(twice, once)| *twice == 2 * once));
        assert_eq!(doubled.len(), 100);
        let done = AtomicUsize::new(0);
        let failed = each(&items, 1, |n, _| {
            done.fetch_add(1, Relaxed);
            if *n == 3 { Err(*n) } else { Ok(()) }
        });
        assert_eq!((failed, done.into_inner()), (Err(3), 4));
        assert_eq!(each(&[] as &[u32], 4, |_, _| Ok::<_, ()>(())), Ok(vec![]));
    }
}
