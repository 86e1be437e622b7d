//! The shape of a grouped expert graph, and what it refuses. Arithmetic only.
//!
//! ```text
//! rows [G·C, H] ─ [G, C, H] ─┬─ × gate [G, H, F] (+ bias) ─┐
//!                            └─ × up   [G, H, F] (+ bias) ─┴─ activation ─ × down [G, F, H] (+ bias) ─ [G·C, H]
//! ```

/// Rows and widths of a graph are multiples of this (N2, W4).
pub const MULTIPLE: usize = 16;
/// Weights that share a scale in a four-bit graph; its widths are multiples of this.
pub const BLOCK: usize = 32;
/// Default limit of a graph: devices refuse or fall back above it (N4).
pub const MAX_GRAPH_BYTES: u64 = 1_000_000_000;

/// Widths of one expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertShape {
    /// Width of a hidden row, H.
    pub hidden: usize,
    /// Width between, F.
    pub inner: usize,
}

/// What stands between the entry matrices and down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `silu(gate) · up`.
    SwiGlu,
    /// gpt-oss: with `g = min(gate, limit)` and `u = clamp(up, ±limit)`,
    /// `g · sigmoid(alpha · g) · (u + 1)`.
    SwiGluClamped {
        /// Slope of the sigmoid.
        alpha: f32,
        /// Where values are cut.
        limit: f32,
    },
}

/// Numbers a graph computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As the reference.
    F32,
    /// The native precision of NPUs; half the bytes.
    F16,
    /// Weights of four bits in blocks of 32 with one scale, GGUF's Q4_0 as it is; rows are
    /// f32. A sixth of the bytes, where the provider takes such products.
    Q4,
}

impl Precision {
    /// Name in flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q4 => "q4",
        }
    }

    /// Bytes of a matrix of `weights`.
    pub fn matrix_bytes(self, weights: u64) -> u64 {
        match self {
            Self::F32 => 4 * weights,
            Self::F16 => 2 * weights,
            // Sixteen bytes and a scale of four for each block.
            Self::Q4 => weights / BLOCK as u64 * 20,
        }
    }

    /// Bytes of a bias of `values`.
    fn bias_bytes(self, values: u64) -> u64 {
        if self == Self::F16 { 2 * values } else { 4 * values }
    }

    /// What widths are multiples of.
    fn multiple(self) -> usize {
        if self == Self::Q4 { BLOCK } else { MULTIPLE }
    }
}

/// One static graph: G experts, C rows each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphSpec {
    /// Widths of every expert in it.
    pub shape: ExpertShape,
    /// Experts, G.
    pub experts: usize,
    /// Rows of each, C.
    pub capacity: usize,
    /// Between the matrices.
    pub activation: Activation,
    /// Whether all three matrices have biases.
    pub biased: bool,
    /// Numbers it computes with.
    pub precision: Precision,
}

/// What a device allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphLimits {
    /// Most bytes of weights in one graph.
    pub max_graph_bytes: u64,
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self { max_graph_bytes: MAX_GRAPH_BYTES }
    }
}

/// Why experts cannot be a static graph; they run on the CPU then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A graph of nothing.
    #[error("a graph of {experts} experts with {capacity} rows computes nothing")]
    Empty { experts: usize, capacity: usize },
    /// A size is not a multiple of [`MULTIPLE`] or [`BLOCK`].
    #[error("{what} of {size} is not a multiple of {of}")]
    Multiple {
        what: &'static str,
        size: usize,
        /// What it should be a multiple of.
        of: usize,
    },
    /// Four-bit products are not known to run there.
    #[error("four-bit products are not known to run on {provider}; use f16")]
    FourBits { provider: &'static str },
    /// More bytes than the device takes.
    #[error("a graph of {bytes} bytes is above the limit of {limit_bytes}; group fewer experts")]
    TooLarge {
        /// Bytes of its weights.
        bytes: u64,
        limit_bytes: u64,
    },
    /// An operation no graph here expresses.
    #[error("{0}, which static graphs do not support yet")]
    Operation(String),
}

impl GraphSpec {
    /// Rows of the graph, G·C.
    pub fn rows(&self) -> usize {
        self.experts * self.capacity
    }

    /// Bytes of its weights.
    pub fn bytes(&self) -> u64 {
        let ExpertShape { hidden, inner } = self.shape;
        let matrices = self.precision.matrix_bytes((3 * hidden * inner) as u64);
        let values = if self.biased { hidden + 2 * inner } else { 0 };
        self.experts as u64 * (matrices + self.precision.bias_bytes(values as u64))
    }

    /// Whether a device with `limits` may be given this graph.
    pub fn check(&self, limits: &GraphLimits) -> Result<(), Refused> {
        if self.experts == 0 || self.capacity == 0 {
            return Err(Refused::Empty { experts: self.experts, capacity: self.capacity });
        }
        let width = self.precision.multiple();
        let sizes = [
            ("a capacity", self.capacity, MULTIPLE),
            ("a hidden width", self.shape.hidden, width),
            ("an inner width", self.shape.inner, width),
        ];
        for (what, size, of) in sizes {
            if !size.is_multiple_of(of) {
                return Err(Refused::Multiple { what, size, of });
            }
        }
        let (bytes, limit_bytes) = (self.bytes(), limits.max_graph_bytes);
        if bytes > limit_bytes {
            return Err(Refused::TooLarge { bytes, limit_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: GraphSpec = GraphSpec {
        shape: ExpertShape { hidden: 4096, inner: 6400 },
        experts: 4,
        capacity: 64,
        activation: Activation::SwiGlu,
        biased: false,
        precision: Precision::F16,
    };

    #[test]
    fn a_graph_keeps_to_the_limit_and_to_multiples() {
        // Phi-3.5-MoE: 157 MB an expert at f16; six fit a gigabyte, eight do not.
        assert_eq!(SPEC.bytes(), 4 * 3 * 4096 * 6400 * 2);
        assert_eq!((SPEC.rows(), SPEC.check(&GraphLimits::default())), (256, Ok(())));
        let eight = GraphSpec { experts: 8, ..SPEC };
        let found = eight.check(&GraphLimits::default());
        assert_eq!(
            found,
            Err(Refused::TooLarge { bytes: 1_258_291_200, limit_bytes: MAX_GRAPH_BYTES })
        );
        let odd = GraphSpec { capacity: 20, ..SPEC };
        let refused = Refused::Multiple { what: "a capacity", size: 20, of: 16 };
        assert_eq!(odd.check(&GraphLimits::default()), Err(refused));
        let none = GraphSpec { experts: 0, ..SPEC };
        assert!(matches!(none.check(&GraphLimits::default()), Err(Refused::Empty { .. })));
    }

    #[test]
    fn four_bits_take_a_sixth_and_whole_blocks() {
        let four = GraphSpec { precision: Precision::Q4, experts: 8, ..SPEC };
        assert_eq!(four.bytes(), 8 * 3 * 4096 * 6400 / 32 * 20);
        assert_eq!(four.check(&GraphLimits::default()), Ok(()));
        let narrow =
            GraphSpec { shape: ExpertShape { hidden: 4096, inner: 6416 }, experts: 1, ..four };
        let refused = Refused::Multiple { what: "an inner width", size: 6416, of: BLOCK };
        assert_eq!(narrow.check(&GraphLimits::default()), Err(refused));
    }
}
