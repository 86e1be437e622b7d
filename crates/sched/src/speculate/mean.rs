//! A mean that forgets: what was seen long ago counts less. Numbers only.

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    pub(super) value: f64,
    /// In observations.
    pub(super) weight: f64,
}

impl Mean {
    /// As if seen once.
    pub(super) fn believed(value: f64) -> Self {
        Self { value, weight: 1.0 }
    }

    /// Sees `value`; `keep` of the weight of what was seen before remains.
    pub(super) fn add(&mut self, value: f64, keep: f64) {
        let before = keep * self.weight;
        self.weight = before + 1.0;
        self.value += (value - self.value) / self.weight;
    }
}
