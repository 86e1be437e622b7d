//! A decision as the engine's options: every setting is the decision's, nothing is chosen here.

use crate::blocks::machine::{DeviceOptions, DeviceRoom};
use crate::blocks::options::StreamingOptions;
use crate::engine::EngineOptions;
use crate::session::SessionOptions;
use motley_ggml::gpu::{GpuDevice, gpu_devices};
use motley_ggml::{LayerGpu, Runtime};
use motley_plan::device_use::DeviceUse;
use motley_plan::{Decision, DeviceShare};
use motley_trace::ExpertKey;

/// llama.cpp counts layers, and takes more for all.
const ALL_LAYERS: u32 = 1 << 16;

/// A device the decision names that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan uses device `{name}`, which this machine does not have; make a plan for it here")]
pub struct MissingDevice {
    pub name: String,
}

impl EngineOptions {
    /// What `decision` says; `most_used` experts are put on devices that share them before the
    /// first token.
    pub fn of(
        decision: &Decision,
        runtime: &Runtime,
        most_used: Vec<ExpertKey>,
    ) -> Result<Self, MissingDevice> {
        let gpus = gpu_devices(runtime);
        let find = |share: &DeviceShare| {
            let found = gpus.iter().find(|gpu| gpu.info().name == share.name);
            let stand_in = || share.stands_in.then(|| GpuDevice::cpu(runtime));
            let found = found.cloned().or_else(stand_in);
            found.ok_or_else(|| MissingDevice { name: share.name.clone() })
        };
        let devices = decision
            .devices
            .iter()
            .map(|share| Ok((find(share)?, share)))
            .collect::<Result<Vec<_>, MissingDevice>>()?;
        let dense = decision.device_use.has_dense();
        let layers = devices.iter().filter(|_| dense);
        Ok(Self {
            loading: decision.loading,
            repack: !decision.exact,
            kernels: decision.kernels.clone(),
            threads: decision.threads.clone(),
            nodes: decision.nodes.clone(),
            experts_used: decision.experts_used,
            memory_bytes: decision.memory_bytes,
            streaming: StreamingOptions { rules: decision.rules, ..StreamingOptions::default() },
            devices: device_options(decision, &devices, most_used),
            gpus: layers
                .map(|(device, share)| LayerGpu { device: device.clone(), part: share.part as f32 })
                .collect(),
            gpu_layers: if dense { ALL_LAYERS } else { 0 },
            gpu_experts: decision.device_use == DeviceUse::Everything,
            ..Self::default()
        })
    }
}

fn device_options(
    decision: &Decision,
    devices: &[(GpuDevice, &DeviceShare)],
    most_used: Vec<ExpertKey>,
) -> Option<DeviceOptions> {
    let shares = decision.device_use.has_some_experts();
    let room = |(device, share): &(GpuDevice, &DeviceShare)| DeviceRoom {
        device: device.clone(),
        budget_bytes: share.expert_bytes,
    };
    // As many as decided; where nobody could know what dense weights leave, as many as fit.
    let known = devices.iter().all(|(_, share)| share.expert_bytes.is_some());
    let experts_most = if known { decision.placement.gpu_slots() } else { u32::MAX };
    shares.then(|| DeviceOptions {
        experts_most,
        rules: decision.rules,
        costs: decision.expert_costs.clone(),
        most_used,
        ..DeviceOptions::over(devices.iter().map(room).collect())
    })
}

impl SessionOptions {
    /// The session `decision` set memory aside for.
    pub fn of(decision: &Decision) -> Self {
        let shape = decision.session;
        Self {
            context_tokens: shape.context_tokens,
            kv: shape.kv,
            windows: shape.windows,
            chunk_tokens: shape.chunk_tokens,
            scores: shape.output_tokens == shape.chunk_tokens,
            ..Self::default()
        }
    }
}
