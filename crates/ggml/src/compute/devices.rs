//! The devices ggml can compute on in this build and on this machine, as data. Opens none.

use crate::api;
use crate::api::numbers::device_type_of;
use crate::seam::runtime::Runtime;
use std::ffi::{CStr, c_char};

/// What ggml takes a device for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceType {
    /// This machine's processor, all cores.
    Cpu,
    /// A GPU with memory of its own.
    Gpu,
    /// A GPU that shares the CPU's memory.
    IntegratedGpu,
    /// An accelerator beside the CPU; Motley's own device is one.
    Accelerator,
}

/// One device, as ggml describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// ggml's name (`CPU`, `CUDA0`, `Vulkan0`).
    pub name: String,
    /// The hardware's name.
    pub description: String,
    /// What ggml takes it for.
    pub kind: DeviceType,
    /// Memory it could still take.
    pub free_bytes: u64,
    /// All it has, free or not; 0 where it has none of its own.
    pub total_bytes: u64,
}

/// All devices in ggml's order. The runtime is proof that backends are registered.
pub fn devices(_: &Runtime) -> Vec<DeviceInfo> {
    // SAFETY: a count of ggml's registry.
    let count = unsafe { api::ggml_backend_dev_count() };
    // SAFETY: the index is below the count, which only grows.
    (0..count).map(|index| unsafe { device(api::ggml_backend_dev_get(index)) }).collect()
}

/// # Safety
/// `device` is one of ggml's.
pub(crate) unsafe fn device(device: api::ggml_backend_dev_t) -> DeviceInfo {
    let (mut free, mut total) = (0, 0);
    // SAFETY: devices live as long as the process, and so do their texts.
    unsafe {
        api::ggml_backend_dev_memory(device, &mut free, &mut total);
        DeviceInfo {
            name: text(api::ggml_backend_dev_name(device)),
            description: text(api::ggml_backend_dev_description(device)),
            kind: kind(api::ggml_backend_dev_type(device)),
            free_bytes: free as u64,
            total_bytes: total as u64,
        }
    }
}

fn kind(raw: api::ggml_backend_dev_type) -> DeviceType {
    match device_type_of(raw) {
        api::GGML_BACKEND_DEVICE_TYPE_CPU => DeviceType::Cpu,
        api::GGML_BACKEND_DEVICE_TYPE_GPU => DeviceType::Gpu,
        api::GGML_BACKEND_DEVICE_TYPE_IGPU => DeviceType::IntegratedGpu,
        _ => DeviceType::Accelerator,
    }
}

/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::runtime::Seam;

    #[test]
    fn the_cpu_is_there_and_so_are_we() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let found = devices(&runtime);
        let cpu = found.iter().find(|device| device.kind == DeviceType::Cpu).unwrap();
        assert!(cpu.total_bytes > 0 && !cpu.description.is_empty(), "{cpu:?}");
        assert!(found.iter().any(|device| device.name == "MOTLEY"), "{found:?}");
    }
}
