//! Starting llama.cpp once per process: with Motley's device registered, or bare.

use super::{log, shim};
use crate::seam::device;
use crate::seam::runtime::{Runtime, Seam};
use llama_cpp_sys_2 as sys;
use std::sync::OnceLock;

/// ggml's device list is per process and only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("llama.cpp already runs in this process with the seam {running:?}; start a new process")]
pub struct SeamConflict {
    /// What the first call asked for.
    pub running: Seam,
}

impl Runtime {
    /// Initialises llama.cpp; repeated calls with the same `seam` are free.
    pub fn start(seam: Seam) -> Result<Self, SeamConflict> {
        static STARTED: OnceLock<Seam> = OnceLock::new();
        let running = *STARTED.get_or_init(|| {
            log::install();
            shim::install_last_words();
            // SAFETY: called once, before any other llama.cpp function.
            unsafe {
                sys::llama_backend_init();
                #[cfg(feature = "dynamic-backends")]
                sys::ggml_backend_load_all();
            }
            if seam == Seam::Registered {
                device::register();
            }
            seam
        });
        if running == seam { Ok(Self::initialised(seam)) } else { Err(SeamConflict { running }) }
    }
}
