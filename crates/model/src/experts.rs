//! Where every expert lies: per layer and matrix a base and a stride, nothing per expert.

use serde::Serialize;

use crate::gguf::GgmlType;
use crate::role::{Matrix, TensorPart};

/// A range of one of the model's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct FileRange {
    pub file: usize,
    /// Bytes from the file's start.
    pub offset: u64,
    pub len_bytes: u64,
}

/// One matrix of all experts of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertTensor {
    /// Index in [`crate::ModelSpec::tensors`].
    pub tensor: usize,
    pub matrix: Matrix,
    pub part: TensorPart,
    pub ty: GgmlType,
    pub file: usize,
    /// Where expert 0 begins in that file.
    pub base_offset: u64,
    /// Bytes of one expert, and from one expert to the next.
    pub stride_bytes: u64,
}

/// The routed experts of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerExperts {
    pub layer: u32,
    pub experts: u32,
    /// Experts a token uses (k).
    pub used: u32,
    /// Matrices and their parts, at most sixteen.
    pub tensors: Vec<ExpertTensor>,
}

impl LayerExperts {
    /// Every range of one expert; empty if there is no such expert.
    pub fn ranges(&self, expert: u32) -> impl Iterator<Item = (&ExpertTensor, FileRange)> {
        let tensors = if expert < self.experts { &self.tensors[..] } else { &[] };
        tensors.iter().map(move |tensor| (tensor, tensor.range(expert)))
    }

    /// Bytes of one expert, all matrices and parts.
    pub fn expert_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.stride_bytes).sum()
    }

    /// Bytes of the k experts one token uses.
    pub fn token_bytes(&self) -> u64 {
        self.expert_bytes() * u64::from(self.used)
    }

    /// Bytes of all experts.
    pub fn total_bytes(&self) -> u64 {
        self.expert_bytes() * u64::from(self.experts)
    }
}

impl ExpertTensor {
    /// Where `expert` lies; the caller has checked that it exists.
    fn range(&self, expert: u32) -> FileRange {
        FileRange {
            file: self.file,
            offset: self.base_offset + u64::from(expert) * self.stride_bytes,
            len_bytes: self.stride_bytes,
        }
    }
}
