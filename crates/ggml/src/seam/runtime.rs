//! Proof that ggml's devices are registered in this process, Motley's own among them or not.
//! Says nothing about how that came about: `llama::runtime` starts a linked llama.cpp.

/// Whether the routed-expert blocks go through Motley in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seam {
    /// The device is registered; every MoE model's blocks arrive at an executor.
    Registered,
    /// The bare engine, for comparison: nothing is registered.
    Absent,
}

/// Proof that ggml is initialised; needed to load a model and to ask for devices.
#[derive(Debug, Clone, Copy)]
pub struct Runtime {
    seam: Seam,
}

impl Runtime {
    /// For whoever has just initialised ggml with this `seam`.
    pub(crate) fn initialised(seam: Seam) -> Self {
        Self { seam }
    }

    /// Whether blocks go through Motley.
    pub fn seam(&self) -> Seam {
        self.seam
    }
}
