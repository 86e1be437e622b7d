//! Motley's ggml device: an accelerator (type ACCEL, as BLAS is) that claims the
//! routed-expert blocks and nothing else. Registered once per process.
//!
//! Like BLAS it shares the CPU's default buffer type, so activations stay where
//! they are and no copy is made at the seam. It accepts expert weights in plain
//! host memory (mapped by llama.cpp), in the CPU's own rearranged types
//! (repacking), and in [`crate::reserve`]'s address space.

use crate::abi::{self, BufferType, Device, DeviceInterface, Registry, RegistryInterface};
use crate::{backend, claim, cpu, reserve};
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

const NAME: &CStr = c"MOTLEY";
const DESCRIPTION: &CStr = c"routed experts";

struct Seam {
    reserved: *mut BufferType,
    rearranged: Vec<sys::ggml_backend_buffer_type_t>,
}

// SAFETY: the pointers are to objects that live until the process ends and are
// only read after registration.
unsafe impl Send for Seam {}
// SAFETY: as above.
unsafe impl Sync for Seam {}

static SEAM: OnceLock<Seam> = OnceLock::new();

/// Registers the device with ggml; later calls do nothing. Must come before a
/// model is loaded.
pub(crate) fn register() {
    SEAM.get_or_init(|| {
        let registry = Box::into_raw(Box::new(registry()));
        let device = Box::into_raw(Box::new(device(registry)));
        // SAFETY: the registry has no device until here and nobody else sees it yet.
        unsafe { (*registry).context = device.cast() };
        let seam = Seam { reserved: reserve::buffer_type(), rearranged: cpu::extra_buffer_types() };
        // SAFETY: the tables match the pinned header (`abi`, tested) and are leaked.
        unsafe { sys::ggml_backend_register(registry.cast()) };
        seam
    });
}

/// The reserved buffer type, once the device is registered.
pub(crate) fn reserved_buffer_type() -> Option<sys::ggml_backend_buffer_type_t> {
    SEAM.get().map(|seam| seam.reserved.cast())
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
            get_memory,
            get_type,
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

/// No memory of its own: zero means "none to report".
pub(crate) unsafe extern "C" fn get_memory(_: *mut Device, free: *mut usize, total: *mut usize) {
    // SAFETY: ggml passes two valid places.
    unsafe {
        *free = 0;
        *total = 0;
    }
}

pub(crate) unsafe extern "C" fn get_type(_: *mut Device) -> sys::ggml_backend_dev_type {
    sys::GGML_BACKEND_DEVICE_TYPE_ACCEL
}

unsafe extern "C" fn get_props(_: *mut Device, props: *mut sys::ggml_backend_dev_props) {
    let mut told = accelerator_props(NAME, DESCRIPTION);
    told.caps.mmap_support = true;
    // SAFETY: ggml passes a valid place.
    unsafe { *props = told };
}

/// An accelerator without memory of its own and without capabilities.
pub(crate) fn accelerator_props(
    name: &'static CStr,
    description: &'static CStr,
) -> sys::ggml_backend_dev_props {
    // SAFETY: all-zero is a valid `ggml_backend_dev_props`.
    let mut props: sys::ggml_backend_dev_props = unsafe { std::mem::zeroed() };
    props.name = name.as_ptr();
    props.description = description.as_ptr();
    props.type_ = sys::GGML_BACKEND_DEVICE_TYPE_ACCEL;
    props
}

unsafe extern "C" fn get_buffer_type(_: *mut Device) -> sys::ggml_backend_buffer_type_t {
    // SAFETY: returns a static of ggml's.
    unsafe { sys::ggml_backend_cpu_buffer_type() }
}

unsafe extern "C" fn supports_op(_: *mut Device, op: *const sys::ggml_tensor) -> bool {
    // SAFETY: ggml asks about live tensors.
    unsafe { claim::belongs_to_block(op) }
}

unsafe extern "C" fn supports_buft(_: *mut Device, buft: sys::ggml_backend_buffer_type_t) -> bool {
    // SAFETY: ggml passes a live buffer type.
    let host = unsafe { sys::ggml_backend_buft_is_host(buft) };
    host || SEAM
        .get()
        .is_some_and(|seam| buft == seam.reserved.cast() || seam.rearranged.contains(&buft))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_found_by_name_and_has_no_memory() {
        crate::Runtime::start(crate::Seam::Registered).unwrap();
        // SAFETY: lookups in ggml's registry.
        unsafe {
            let device = sys::ggml_backend_dev_by_name(NAME.as_ptr());
            assert!(!device.is_null());
            assert_eq!(sys::ggml_backend_dev_type(device), sys::GGML_BACKEND_DEVICE_TYPE_ACCEL);
            let (mut free, mut total) = (1, 1);
            sys::ggml_backend_dev_memory(device, &mut free, &mut total);
            assert_eq!((free, total), (0, 0));
        }
    }
}
