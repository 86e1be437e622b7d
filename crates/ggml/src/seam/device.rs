//! Motley's ggml device: an accelerator (type ACCEL, as BLAS is) that claims the
//! routed-expert blocks and nothing else. Registered once per process.
//!
//! Like BLAS it shares the CPU's default buffer type, so activations stay where
//! they are and no copy is made at the seam. It accepts expert weights in plain
//! host memory (mapped by llama.cpp), in the CPU's own rearranged types
//! (repacking), and in [`super::reserve`]'s address space.

use super::{accelerator, backend, claim, reserve};
use crate::api;
use crate::api::abi::{self, BufferType, Device, DeviceInterface, Registry, RegistryInterface};
use crate::compute::cpu;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

const NAME: &CStr = c"MOTLEY";
const DESCRIPTION: &CStr = c"routed experts";

/// Buffer types beside plain host memory in which the device accepts weights.
struct AcceptedMemory {
    reserved: *mut BufferType,
    rearranged: Vec<api::ggml_backend_buffer_type_t>,
}

// SAFETY: the pointers are to objects that live until the process ends and are
// only read after registration.
unsafe impl Send for AcceptedMemory {}
// SAFETY: as above.
unsafe impl Sync for AcceptedMemory {}

static ACCEPTED: OnceLock<AcceptedMemory> = OnceLock::new();

/// Registers the device with ggml; later calls do nothing. Must come before a
/// model is loaded.
pub(crate) fn register() {
    ACCEPTED.get_or_init(|| {
        let registry = Box::into_raw(Box::new(registry()));
        let device = Box::into_raw(Box::new(device(registry)));
        // SAFETY: the registry has no device until here and nobody else sees it yet.
        unsafe { (*registry).context = device.cast() };
        let accepted = AcceptedMemory {
            reserved: reserve::buffer_type(),
            rearranged: cpu::extra_buffer_types(),
        };
        // SAFETY: the tables match the pinned header (`api::abi`, tested) and are leaked.
        unsafe { api::ggml_backend_register(registry.cast()) };
        accepted
    });
}

/// The reserved buffer type, once the device is registered.
pub(crate) fn reserved_buffer_type() -> Option<api::ggml_backend_buffer_type_t> {
    ACCEPTED.get().map(|accepted| accepted.reserved.cast())
}

fn registry() -> Registry {
    Registry {
        api_version: abi::API_VERSION,
        iface: RegistryInterface {
            get_name: registry_name,
            get_device_count,
            get_device,
            get_proc_address: Some(get_proc_address),
        },
        context: null_mut(),
    }
}

fn device(reg: *mut Registry) -> Device {
    Device {
        iface: DeviceInterface {
            get_name: device_name,
            get_description,
            get_memory: accelerator::get_memory,
            get_type: accelerator::get_type,
            get_props,
            init_backend: backend::init_backend,
            get_buffer_type,
            get_host_buffer_type: None,
            buffer_from_host_ptr: None,
            supports_op,
            supports_buft,
            offload_op: None,
            event_new: None,
            event_free: None,
            event_synchronize: None,
        },
        reg,
        context: null_mut(),
    }
}

unsafe extern "C" fn registry_name(_: *mut Registry) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn get_device_count(_: *mut Registry) -> usize {
    1
}

unsafe extern "C" fn get_device(registry: *mut Registry, _: usize) -> *mut Device {
    // SAFETY: ggml passes our registry, whose context is its one device.
    unsafe { (*registry).context.cast() }
}

unsafe extern "C" fn get_proc_address(_: *mut Registry, name: *const c_char) -> *mut c_void {
    // SAFETY: ggml passes a NUL-terminated name.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"ggml_backend_set_n_threads" => backend::set_threads as *mut c_void,
        b"ggml_backend_set_abort_callback" => backend::set_abort as *mut c_void,
        _ => null_mut(),
    }
}

unsafe extern "C" fn device_name(_: *mut Device) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn get_description(_: *mut Device) -> *const c_char {
    DESCRIPTION.as_ptr()
}

unsafe extern "C" fn get_props(_: *mut Device, props: *mut api::ggml_backend_dev_props) {
    let mut reported = accelerator::props(NAME, DESCRIPTION);
    reported.caps.mmap_support = true;
    // SAFETY: ggml passes a valid place.
    unsafe { *props = reported };
}

unsafe extern "C" fn get_buffer_type(_: *mut Device) -> api::ggml_backend_buffer_type_t {
    // SAFETY: returns a static of ggml's.
    unsafe { api::ggml_backend_cpu_buffer_type() }
}

unsafe extern "C" fn supports_op(_: *mut Device, op: *const api::ggml_tensor) -> bool {
    // SAFETY: ggml asks about live tensors.
    unsafe { claim::belongs_to_block(op) && claim::is_claimed(op) }
}

unsafe extern "C" fn supports_buft(_: *mut Device, buft: api::ggml_backend_buffer_type_t) -> bool {
    // SAFETY: ggml passes a live buffer type.
    let known = unsafe { api::ggml_backend_buft_is_host(buft) || reserve::is_one(buft.cast()) };
    known || ACCEPTED.get().is_some_and(|accepted| accepted.rearranged.contains(&buft))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seam::runtime::{Runtime, Seam};

    #[test]
    fn the_device_is_found_by_name_and_has_no_memory() {
        Runtime::start(Seam::Registered).unwrap();
        // SAFETY: lookups in ggml's registry, whose devices and names live until the end.
        unsafe {
            let devices = (0..api::ggml_backend_dev_count()).map(|n| api::ggml_backend_dev_get(n));
            let is_ours = |&device: &_| CStr::from_ptr(api::ggml_backend_dev_name(device)) == NAME;
            let device = devices.into_iter().find(is_ours).unwrap();
            assert_eq!(api::ggml_backend_dev_type(device), api::GGML_BACKEND_DEVICE_TYPE_ACCEL);
            let (mut free, mut total) = (1, 1);
            api::ggml_backend_dev_memory(device, &mut free, &mut total);
            assert_eq!((free, total), (0, 0));
        }
    }
}
