//! What Motley's devices tell ggml alike: accelerators (type ACCEL) without memory of their
//! own and, unless they add some, without capabilities.

use crate::api;
use crate::api::abi::Device;
use std::ffi::CStr;

/// Zero means "none to report".
pub(super) unsafe extern "C" fn get_memory(_: *mut Device, free: *mut usize, total: *mut usize) {
    // SAFETY: ggml passes two valid places.
    unsafe {
        *free = 0;
        *total = 0;
    }
}

pub(super) unsafe extern "C" fn get_type(_: *mut Device) -> api::ggml_backend_dev_type {
    api::GGML_BACKEND_DEVICE_TYPE_ACCEL
}

pub(super) fn props(
    name: &'static CStr,
    description: &'static CStr,
) -> api::ggml_backend_dev_props {
    // SAFETY: all-zero is a valid `ggml_backend_dev_props`.
    let mut props: api::ggml_backend_dev_props = unsafe { std::mem::zeroed() };
    props.name = name.as_ptr();
    props.description = description.as_ptr();
    props.type_ = api::GGML_BACKEND_DEVICE_TYPE_ACCEL;
    props
}
