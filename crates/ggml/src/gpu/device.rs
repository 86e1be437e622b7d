//! Devices that experts can live on. One device, one unit: several GPUs of different
//! size are several units.

use crate::api;
use crate::api::numbers::caps_of;
use crate::compute::cpu;
use crate::compute::devices::{DeviceInfo, DeviceType, device, devices};
use crate::compute::stream::Stream;
use crate::seam::runtime::Runtime;
use std::ptr::{NonNull, null};

/// A device, found by [`gpu_devices`]. Lives until the process ends.
#[derive(Debug, Clone)]
pub struct GpuDevice {
    raw: NonNull<api::ggml_backend_device>,
    info: DeviceInfo,
}

// SAFETY: ggml's devices live until the process ends; the functions called here only read them
// or take the backend's own locks.
unsafe impl Send for GpuDevice {}
// SAFETY: as above.
unsafe impl Sync for GpuDevice {}

/// GPUs, with memory of their own or shared, in ggml's order. ggml hides CPU-type Vulkan
/// devices (lavapipe) unless `GGML_VK_VISIBLE_DEVICES` names them.
pub fn gpu_devices(runtime: &Runtime) -> Vec<GpuDevice> {
    let gpu = |info: &DeviceInfo| matches!(info.kind, DeviceType::Gpu | DeviceType::IntegratedGpu);
    let listed = devices(runtime).into_iter().enumerate().filter(|(_, info)| gpu(info));
    // SAFETY: the index is below the count, which only grows.
    let found = listed.filter_map(|(index, info)| unsafe {
        NonNull::new(api::ggml_backend_dev_get(index)).map(|raw| GpuDevice { raw, info })
    });
    found.collect()
}

impl GpuDevice {
    /// ggml's CPU device as a GPU: the same slots, copies and tasks without a GPU, with
    /// the bits of the CPU's own kernels. For tests.
    pub fn cpu(_: &Runtime) -> Self {
        let raw = NonNull::new(cpu::device()).expect("checked by `cpu::device`");
        // SAFETY: devices live until the process ends.
        Self { raw, info: unsafe { device(raw.as_ptr()) } }
    }

    /// What it is; memory as it was when listed.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Whether its memory is not the CPU's.
    pub fn has_own_memory(&self) -> bool {
        self.info.kind == DeviceType::Gpu
    }

    /// Memory it could take now: what llama.cpp's dense layers and KV cache, and anybody
    /// else, have left. Some drivers do not say and answer with all of it.
    pub fn free_bytes(&self) -> u64 {
        // SAFETY: devices live until the process ends.
        unsafe { device(self.raw()) }.free_bytes
    }

    pub(crate) fn raw(&self) -> api::ggml_backend_dev_t {
        self.raw.as_ptr()
    }

    pub(crate) fn buffer_type(&self) -> api::ggml_backend_buffer_type_t {
        // SAFETY: the device is live.
        unsafe { api::ggml_backend_dev_buffer_type(self.raw()) }
    }

    /// Memory of this process it copies from and to quickly, if it has such.
    pub(crate) fn pinned_buffer_type(&self) -> Option<api::ggml_backend_buffer_type_t> {
        // SAFETY: the device is live.
        let pinned = unsafe { api::ggml_backend_dev_host_buffer_type(self.raw()) };
        (!pinned.is_null()).then_some(pinned)
    }

    /// Whether copies can go on while the caller does something else, and say when they
    /// have ended.
    pub(crate) fn copies_by_itself(&self) -> bool {
        // SAFETY: all-zero is valid, and ggml fills it in for a live device.
        let caps = unsafe {
            let mut props: api::ggml_backend_dev_props = std::mem::zeroed();
            api::ggml_backend_dev_get_props(self.raw(), &mut props);
            caps_of(&props)
        };
        // A GPU that shares our memory gains nothing from a copy on the way.
        self.has_own_memory() && caps.async_ && caps.events
    }

    /// Whether it computes `operation`.
    ///
    /// # Safety
    /// `operation` and its sources must be live.
    pub(crate) unsafe fn computes(&self, operation: *const api::ggml_tensor) -> bool {
        // SAFETY: by the caller.
        unsafe { api::ggml_backend_dev_supports_op(self.raw(), operation) }
    }

    /// A stream of work on it.
    pub(crate) fn stream(&self) -> Option<Stream> {
        // SAFETY: the device is live; no parameters.
        let stream = Stream::new(unsafe { api::ggml_backend_dev_init(self.raw(), null()) })?;
        if self.info.kind == DeviceType::Cpu {
            // SAFETY: the backend is the CPU's. One thread: others belong to the CPU unit.
            unsafe { (cpu::procs().set_threads)(stream.raw(), 1) };
        }
        Some(stream)
    }
}
