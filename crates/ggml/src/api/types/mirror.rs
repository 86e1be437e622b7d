//! Mirror of the part of `ggml.h` and `ggml-backend.h` that is used here, for builds that link no
//! ggml. Layout only; a host's own is compared with it before anything is done (`hosted::check`).
#![allow(non_camel_case_types, reason = "ggml's own names")]
#![cfg_attr(feature = "llama", allow(dead_code, reason = "compared with the headers, not used"))]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Structs that only ggml looks into.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[repr(C)]
            #[derive(Debug)]
            pub(crate) struct $name {
                _unused: [u8; 0],
            }
        )*
    };
}

opaque! {
    ggml_backend ggml_backend_buffer ggml_backend_buffer_type ggml_backend_device
    ggml_backend_event ggml_backend_reg ggml_cgraph ggml_context ggml_threadpool
}

pub(crate) type ggml_backend_t = *mut ggml_backend;
pub(crate) type ggml_backend_buffer_t = *mut ggml_backend_buffer;
pub(crate) type ggml_backend_buffer_type_t = *mut ggml_backend_buffer_type;
pub(crate) type ggml_backend_dev_t = *mut ggml_backend_device;
pub(crate) type ggml_backend_event_t = *mut ggml_backend_event;
pub(crate) type ggml_backend_reg_t = *mut ggml_backend_reg;

pub(crate) type ggml_type = c_uint;
pub(crate) type ggml_op = c_uint;
pub(crate) type ggml_glu_op = c_uint;
pub(crate) type ggml_status = c_int;
pub(crate) type ggml_backend_dev_type = c_uint;
pub(crate) type ggml_backend_buffer_usage = c_uint;

pub(crate) type ggml_abort_callback = Option<unsafe extern "C" fn(*mut c_void) -> bool>;
pub(crate) type ggml_custom_op_t =
    Option<unsafe extern "C" fn(*mut ggml_tensor, c_int, c_int, *mut c_void)>;
pub(crate) type ggml_to_float_t = Option<unsafe extern "C" fn(*const c_void, *mut f32, i64)>;
pub(crate) type ggml_from_float_t = Option<unsafe extern "C" fn(*const f32, *mut c_void, i64)>;

pub(crate) const GGML_BACKEND_BUFFER_USAGE_WEIGHTS: ggml_backend_buffer_usage = 1;
pub(crate) const GGML_BACKEND_DEVICE_TYPE_CPU: ggml_backend_dev_type = 0;
pub(crate) const GGML_BACKEND_DEVICE_TYPE_GPU: ggml_backend_dev_type = 1;
pub(crate) const GGML_BACKEND_DEVICE_TYPE_IGPU: ggml_backend_dev_type = 2;
pub(crate) const GGML_BACKEND_DEVICE_TYPE_ACCEL: ggml_backend_dev_type = 3;
pub(crate) const GGML_GLU_OP_SWIGLU: ggml_glu_op = 2;
pub(crate) const GGML_GLU_OP_SWIGLU_OAI: ggml_glu_op = 3;
pub(crate) const GGML_STATUS_FAILED: ggml_status = -1;
pub(crate) const GGML_STATUS_SUCCESS: ggml_status = 0;
pub(crate) const GGML_STATUS_ABORTED: ggml_status = 1;
pub(crate) const GGML_TENSOR_FLAG_COMPUTE: c_uint = 16;
pub(crate) const GGML_TYPE_F32: ggml_type = 0;
pub(crate) const GGML_TYPE_I32: ggml_type = 26;

// Operations as the pinned ggml numbers them; a host's own numbers are translated
// (`super::super::numbers`).
pub(crate) const GGML_OP_NONE: ggml_op = 0;
pub(crate) const GGML_OP_ADD_ID: ggml_op = 3;
pub(crate) const GGML_OP_MUL: ggml_op = 7;
pub(crate) const GGML_OP_SQR: ggml_op = 9;
pub(crate) const GGML_OP_MUL_MAT: ggml_op = 29;
pub(crate) const GGML_OP_MUL_MAT_ID: ggml_op = 30;
pub(crate) const GGML_OP_SCALE: ggml_op = 32;
pub(crate) const GGML_OP_RESHAPE: ggml_op = 36;
pub(crate) const GGML_OP_VIEW: ggml_op = 37;
pub(crate) const GGML_OP_PERMUTE: ggml_op = 38;
pub(crate) const GGML_OP_TRANSPOSE: ggml_op = 39;
pub(crate) const GGML_OP_CLAMP: ggml_op = 50;
pub(crate) const GGML_OP_UNARY: ggml_op = 91;
pub(crate) const GGML_OP_GLU: ggml_op = 100;
pub(crate) const GGML_OP_COUNT: ggml_op = 101;

/// `struct ggml_tensor`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ggml_tensor {
    pub(crate) type_: ggml_type,
    pub(crate) buffer: *mut ggml_backend_buffer,
    pub(crate) ne: [i64; 4],
    pub(crate) nb: [usize; 4],
    pub(crate) op: ggml_op,
    pub(crate) op_params: [i32; 16],
    pub(crate) flags: i32,
    pub(crate) src: [*mut Self; 10],
    pub(crate) view_src: *mut Self,
    pub(crate) view_offs: usize,
    pub(crate) data: *mut c_void,
    pub(crate) name: [c_char; 64],
    pub(crate) extra: *mut c_void,
    pub(crate) padding: [c_char; 8],
}

/// `struct ggml_init_params`.
#[repr(C)]
pub(crate) struct ggml_init_params {
    pub(crate) mem_size: usize,
    pub(crate) mem_buffer: *mut c_void,
    pub(crate) no_alloc: bool,
}

/// `struct ggml_threadpool_params`.
#[repr(C)]
pub(crate) struct ggml_threadpool_params {
    pub(crate) cpumask: [bool; 512],
    pub(crate) n_threads: c_int,
    pub(crate) prio: c_int,
    pub(crate) poll: u32,
    pub(crate) strict_cpu: bool,
    pub(crate) paused: bool,
}

/// `struct ggml_type_traits`.
#[repr(C)]
pub(crate) struct ggml_type_traits {
    pub(crate) type_name: *const c_char,
    pub(crate) blck_size: i64,
    pub(crate) blck_size_interleave: i64,
    pub(crate) type_size: usize,
    pub(crate) is_quantized: bool,
    pub(crate) to_float: ggml_to_float_t,
    pub(crate) from_float_ref: ggml_from_float_t,
}

/// `struct ggml_backend_feature`.
#[repr(C)]
pub(crate) struct ggml_backend_feature {
    pub(crate) name: *const c_char,
    pub(crate) value: *const c_char,
}

/// `struct ggml_backend_dev_caps`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ggml_backend_dev_caps {
    pub(crate) async_: bool,
    pub(crate) host_buffer: bool,
    pub(crate) buffer_from_host_ptr: bool,
    pub(crate) events: bool,
    pub(crate) mmap_support: bool,
}

/// `struct ggml_backend_dev_props`.
#[repr(C)]
pub(crate) struct ggml_backend_dev_props {
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) memory_free: usize,
    pub(crate) memory_total: usize,
    pub(crate) type_: ggml_backend_dev_type,
    pub(crate) device_id: *const c_char,
    pub(crate) caps: ggml_backend_dev_caps,
}

#[cfg(all(test, feature = "llama"))]
mod tests {
    use super::super::linked;
    use super::*;
    use std::mem::offset_of;

    /// Size of a struct and offsets of fields, by the mirror and by the headers.
    macro_rules! same_layout {
        ($name:ident: $($field:ident)*) => {
            assert_eq!(size_of::<$name>(), size_of::<linked::$name>(), stringify!($name));
            $(
                assert_eq!(
                    offset_of!($name, $field),
                    offset_of!(linked::$name, $field),
                    concat!(stringify!($name), ".", stringify!($field)),
                );
            )*
        };
    }

    macro_rules! same_values {
        ($($name:ident)*) => {
            $(assert_eq!(i64::from($name), i64::from(linked::$name), stringify!($name));)*
        };
    }

    #[test]
    fn the_mirror_is_as_the_headers_say() {
        same_layout!(ggml_tensor: type_ buffer ne nb op op_params flags src view_src view_offs
            data name extra padding);
        same_layout!(ggml_init_params: mem_size mem_buffer no_alloc);
        same_layout!(ggml_threadpool_params: cpumask n_threads prio poll strict_cpu paused);
        same_layout!(ggml_type_traits: type_name blck_size blck_size_interleave type_size
            is_quantized to_float from_float_ref);
        same_layout!(ggml_backend_feature: name value);
        same_layout!(ggml_backend_dev_caps: async_ host_buffer buffer_from_host_ptr events
            mmap_support);
        same_layout!(ggml_backend_dev_props: name description memory_free memory_total type_
            device_id caps);
        same_values!(GGML_BACKEND_BUFFER_USAGE_WEIGHTS GGML_BACKEND_DEVICE_TYPE_CPU
            GGML_BACKEND_DEVICE_TYPE_GPU GGML_BACKEND_DEVICE_TYPE_IGPU
            GGML_BACKEND_DEVICE_TYPE_ACCEL GGML_GLU_OP_SWIGLU GGML_GLU_OP_SWIGLU_OAI
            GGML_STATUS_FAILED GGML_STATUS_SUCCESS GGML_STATUS_ABORTED GGML_TENSOR_FLAG_COMPUTE
            GGML_TYPE_F32 GGML_TYPE_I32 GGML_OP_NONE GGML_OP_ADD_ID GGML_OP_MUL GGML_OP_SQR
            GGML_OP_MUL_MAT GGML_OP_MUL_MAT_ID GGML_OP_SCALE GGML_OP_RESHAPE GGML_OP_VIEW
            GGML_OP_PERMUTE GGML_OP_TRANSPOSE GGML_OP_CLAMP GGML_OP_UNARY GGML_OP_GLU
            GGML_OP_COUNT);
    }
}
