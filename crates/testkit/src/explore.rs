//! Runs a scenario of threads under every order loom finds, or many times with the system's own
//! threads; and notices when two hold a slot at once. docs/decisions/0082 says why loom.

#[cfg(feature = "loom")]
pub use loom::{sync::atomic::AtomicU32, thread::spawn};
#[cfg(not(feature = "loom"))]
pub use std::{sync::atomic::AtomicU32, thread::spawn};

use std::sync::atomic::Ordering;

/// Runs `scenario` under every order of its threads with at most `preemptions` switches away from
/// a thread that could go on (loom's bound; most bugs need one or two), and says how many.
#[cfg(feature = "loom")]
pub fn explore(name: &str, preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    use std::sync::Arc;
    let explored = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = Arc::clone(&explored);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    model.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    println!("explored {name}: {} schedules", explored.load(Ordering::Relaxed));
}

/// Runs `scenario` with the system's threads; once under Miri, which has seeds of its own.
#[cfg(not(feature = "loom"))]
pub fn explore(_name: &str, _preemptions: usize, scenario: impl Fn()) {
    let runs = if cfg!(miri) { 1 } else { 200 };
    (0..runs).for_each(|_| scenario());
}

/// Who holds which slot or buffer, as a test sees it. Counts are loom's, so that it tries every order of
/// two who touch the same slot.
pub struct Holders(Vec<AtomicU32>);

impl Holders {
    /// Of `slots` slots, which nobody holds.
    pub fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| AtomicU32::new(0)).collect())
    }

    /// Holds slot `index` while `body` runs.
    ///
    /// # Panics
    /// When somebody else holds it.
    pub fn hold<T>(&self, index: usize, body: impl FnOnce() -> T) -> T {
        // Relaxed: Miri and TSan must not take this count for what keeps holders apart.
        let others = self.0[index].fetch_add(1, Ordering::Relaxed);
        assert_eq!(others, 0, "slot {index} has two holders");
        let result = body();
        self.0[index].fetch_sub(1, Ordering::Relaxed);
        result
    }
}
