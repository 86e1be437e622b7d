//! What Motley's devices tell ggml alike: accelerators (type ACCEL) without memory of their
//! own and, unless they add some, without capabilities.

use crate::api;
use crate::api::abi::Device;
use crate::api::numbers::accelerator_type;
use std::ffi::CStr;

/// Zero means "none to report".
pub(crate) unsafe extern "C" fn get_memory(_: *mut Device, free: *mut usize, total: *mut usize) {
    // SAFETY: ggml passes two valid places.
    unsafe {
        *free = 0;
        *total = 0;
    }
}

pub(crate) unsafe extern "C" fn get_type(_: *mut Device) -> api::ggml_backend_dev_type {
    accelerator_type()
}

pub(crate) fn props(
    name: &'static CStr,
    description: &'static CStr,
) -> api::ggml_backend_dev_props {
    // SAFETY: all-zero is a valid `ggml_backend_dev_props`.
    let mut props: api::ggml_backend_dev_props = unsafe { std::mem::zeroed() };
    props.name = name.as_ptr();
    props.description = description.as_ptr();
    props.type_ = accelerator_type();
    props
}
