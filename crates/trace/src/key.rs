//! The name of one routed expert: its layer and its number in that layer.
//! Not a place: where an expert's bytes are is the cache's and the store's business.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One routed expert. Ordered by layer, then expert, which is the order of the bytes in a GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExpertKey {
    /// Layer, counted as in the header of the trace or the model.
    pub layer: u16,
    /// Expert within the layer.
    pub expert: u16,
}

impl ExpertKey {
    /// The key of `expert` in `layer`.
    pub const fn new(layer: u16, expert: u16) -> Self {
        Self { layer, expert }
    }
}

impl fmt::Display for ExpertKey {
    /// `layer.expert`: `12.77`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.layer, self.expert)
    }
}

/// How many layers and experts there are: the domain of [`ExpertKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpertGrid {
    /// Layers, dense ones included when the numbering includes them.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
}

impl ExpertGrid {
    /// Number of keys.
    pub const fn len(self) -> usize {
        self.layers as usize * self.experts as usize
    }

    /// Whether there is no key at all.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether `key` is inside.
    pub const fn contains(self, key: ExpertKey) -> bool {
        key.layer < self.layers && key.expert < self.experts
    }

    /// Position of `key` in a dense array of [`Self::len`] entries, layer-major.
    pub const fn index(self, key: ExpertKey) -> usize {
        key.layer as usize * self.experts as usize + key.expert as usize
    }
}
