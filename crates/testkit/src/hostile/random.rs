//! Numbers that are the same for the same seed; good enough to vary attacks.

/// xorshift64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Every seed but 0 gives its own numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
