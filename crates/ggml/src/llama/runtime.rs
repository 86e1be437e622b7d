//! Starting llama.cpp once per process: with Motley's device registered, or bare.

use super::backends::{self, NoBackends};
use super::{heap, log, shim};
use crate::seam::device;
use crate::seam::runtime::{Runtime, Seam};
use std::sync::OnceLock;

/// Why llama.cpp was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// ggml's device list is per process and only grows.
    #[error(
        "llama.cpp already runs in this process with the seam {running:?}; start a new process"
    )]
    SeamConflict {
        /// What the first call asked for.
        running: Seam,
    },
    /// The installation is not whole.
    #[error(transparent)]
    NoBackends(#[from] NoBackends),
}

impl Runtime {
    /// Initialises llama.cpp; repeated calls with the same `seam` are free.
    pub fn start(seam: Seam) -> Result<Self, StartError> {
        static STARTED: OnceLock<Result<Seam, NoBackends>> = OnceLock::new();
        let running = STARTED.get_or_init(|| {
            heap::return_large_blocks();
            log::install();
            shim::install_last_words();
            backends::start()?;
            if seam == Seam::Registered {
                device::register();
            }
            Ok(seam)
        });
        let running = running.clone()?;
        if running != seam {
            return Err(StartError::SeamConflict { running });
        }
        Ok(Self::initialised(seam))
    }
}
