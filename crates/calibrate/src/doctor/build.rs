//! What this build of ggml can use: instruction sets and devices. Nothing of the machine's files.

use motley_ggml::gpu::gpu_devices;
use motley_ggml::{DeviceInfo, Runtime, cpu};
use serde::Serialize;

/// What ggml was built with and what the CPU offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Build {
    /// Processor whose kernels were chosen at start, where there are several.
    pub kernels: Option<String>,
    /// Instruction sets of ggml's CPU kernels, as ggml names them.
    pub used_instructions: Vec<String>,
    /// Those of the CPU that change speed and that the build leaves unused.
    pub unused_instructions: Vec<String>,
    /// How to use them.
    pub instructions_hint: Option<String>,
    /// GPUs that ggml can compute on.
    pub gpus: Vec<UsableGpu>,
}

/// A GPU as ggml sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsableGpu {
    /// ggml's name (`CUDA0`).
    pub name: String,
    /// The hardware's name.
    pub description: String,
    /// Memory that is free.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl UsableGpu {
    fn of(device: &DeviceInfo) -> Self {
        Self {
            name: device.name.clone(),
            description: device.description.clone(),
            free_bytes: device.free_bytes,
            total_bytes: device.total_bytes,
        }
    }
}

impl Build {
    /// Of the running program.
    pub fn of_this(runtime: &Runtime) -> Self {
        let used = cpu::built_features();
        let unused =
            cpu::offered_features().into_iter().filter(|name| !used.iter().any(|u| u == name));
        Self {
            kernels: cpu::loaded_variant(),
            unused_instructions: unused.map(str::to_owned).collect(),
            used_instructions: used,
            instructions_hint: cpu::unused_cpu_level().map(|sentence| last_clause(&sentence)),
            gpus: gpu_devices(runtime).iter().map(|gpu| UsableGpu::of(gpu.info())).collect(),
        }
    }
}

/// What to do, without what is the matter: the facts say that already.
fn last_clause(sentence: &str) -> String {
    sentence.rsplit_once("; ").map_or(sentence, |(_, clause)| clause).to_owned()
}
