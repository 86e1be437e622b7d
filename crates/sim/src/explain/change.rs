//! The circumstances that are changed, one at a time. Names them; what they give is [`what_if`]'s.
//!
//! [`what_if`]: mod@super::what_if

use serde::Serialize;

/// One changed circumstance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Change {
    /// A higher ceiling for memory.
    Memory {
        /// Over the run's.
        factor: f64,
        /// Experts that then stay.
        experts: u32,
        /// The ceiling, where the run had one.
        memory_bytes: Option<u64>,
    },
    /// Room for every expert, read once each.
    AllExperts {
        /// How many there are.
        experts: u32,
    },
    /// A faster disk.
    Disk {
        /// Over the run's.
        factor: f64,
    },
    /// Another number of cores.
    Cores {
        threads: u32,
        /// Speed of computing over the run's.
        factor: f64,
        /// Whether `factor` was measured; otherwise computing is taken to scale with cores.
        measured: bool,
    },
    /// Other experts stay.
    Policy {
        /// Name of the policy.
        name: &'static str,
    },
    /// Other guesses are read early.
    Prefetch {
        /// Name of the prefetcher.
        name: &'static str,
    },
    /// A GPU shares the experts of each layer with the CPU. Its costs are described, not measured.
    Gpu {
        /// The ready machine whose GPU and link are taken.
        like: &'static str,
        /// The GPU's memory.
        memory_gib: f64,
        experts: u32,
        /// Whether RAM for all experts is needed too: the run's, with the GPU's, is too little.
        more_ram: bool,
    },
}
