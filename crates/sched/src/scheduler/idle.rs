//! Idle link time as a budget for guesses (M4). Counts time it is given; reads no clock.
//!
//! Every span in which no demanded transfer was under way or waiting is earned; a guess costs
//! what it takes. So over any stretch guesses use no more of the link than demand left idle, and
//! where demand fills the link they stop by themselves.

use motley_cost::Nanos;

/// Guesses that can be saved up, in transfers.
const MOST_SAVED: u64 = 4;

/// The budget.
#[derive(Debug)]
pub struct IdleLink {
    one_load: Nanos,
    saved: Nanos,
    /// Up to when time has been counted.
    counted_to: Nanos,
    /// Whether demand has had the link since then.
    demanded: bool,
}

impl IdleLink {
    /// Begins with one guess in hand, since the link is idle before the first layer.
    pub fn new(one_load: Nanos) -> Self {
        Self { one_load, saved: one_load, counted_to: Nanos::ZERO, demanded: false }
    }

    /// It is `now`, and from here on the link is, or is not, demanded.
    pub fn observe(&mut self, now: Nanos, demanded: bool) {
        if !self.demanded {
            let most = Nanos(self.one_load.0.saturating_mul(MOST_SAVED));
            self.saved = (self.saved + now.since(self.counted_to)).min(most);
        }
        self.counted_to = self.counted_to.max(now);
        self.demanded = demanded;
    }

    /// Whether a guess may start: nothing is demanded and enough idle time was seen.
    pub fn allows_guess(&self) -> bool {
        !self.demanded && self.saved >= self.one_load
    }

    /// A guess has been started.
    pub fn on_guess(&mut self) {
        self.saved = self.saved - self.one_load;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Nanos = Nanos(10);

    #[test]
    fn a_busy_link_earns_nothing_and_an_idle_one_pays_for_guesses() {
        let mut idle = IdleLink::new(LOAD);
        assert!(idle.allows_guess());
        idle.on_guess();
        idle.observe(Nanos(0), true);
        idle.observe(Nanos(20), false);
        assert!(!idle.allows_guess(), "the link was demanded until now");
        idle.observe(Nanos(29), false);
        assert!(!idle.allows_guess(), "only 9 idle so far");
        idle.observe(Nanos(30), false);
        assert!(idle.allows_guess());
    }

    #[test]
    fn savings_are_bounded() {
        let mut idle = IdleLink::new(LOAD);
        idle.observe(Nanos(1_000_000), false);
        let guesses = (0..100).take_while(|_| {
            let allowed = idle.allows_guess();
            idle.on_guess();
            allowed
        });
        assert_eq!(guesses.count() as u64, MOST_SAVED);
    }
}
