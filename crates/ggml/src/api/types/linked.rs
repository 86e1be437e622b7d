//! The types of the ggml that is linked, from its own headers.

/// Spelled out because an import would bring ggml's function of the same name along.
#[allow(non_camel_case_types, reason = "ggml's own name")]
pub(crate) type ggml_backend_dev_type = llama_cpp_sys_2::ggml_backend_dev_type;

pub(crate) use llama_cpp_sys_2::{
    GGML_BACKEND_BUFFER_USAGE_WEIGHTS, GGML_BACKEND_DEVICE_TYPE_ACCEL,
    GGML_BACKEND_DEVICE_TYPE_CPU, GGML_BACKEND_DEVICE_TYPE_GPU, GGML_BACKEND_DEVICE_TYPE_IGPU,
    GGML_GLU_OP_SWIGLU, GGML_GLU_OP_SWIGLU_OAI, GGML_OP_ADD_ID, GGML_OP_CLAMP, GGML_OP_COUNT,
    GGML_OP_GLU, GGML_OP_MUL, GGML_OP_MUL_MAT, GGML_OP_MUL_MAT_ID, GGML_OP_NONE, GGML_OP_PERMUTE,
    GGML_OP_RESHAPE, GGML_OP_SCALE, GGML_OP_SQR, GGML_OP_TRANSPOSE, GGML_OP_UNARY, GGML_OP_VIEW,
    GGML_STATUS_ABORTED, GGML_STATUS_FAILED, GGML_STATUS_SUCCESS, GGML_TENSOR_FLAG_COMPUTE,
    GGML_TYPE_F32, GGML_TYPE_I32, ggml_abort_callback, ggml_backend, ggml_backend_buffer,
    ggml_backend_buffer_t, ggml_backend_buffer_type_t, ggml_backend_buffer_usage,
    ggml_backend_dev_caps, ggml_backend_dev_props, ggml_backend_dev_t, ggml_backend_device,
    ggml_backend_event, ggml_backend_event_t, ggml_backend_feature, ggml_backend_reg_t,
    ggml_backend_t, ggml_cgraph, ggml_context, ggml_custom_op_t, ggml_glu_op, ggml_init_params,
    ggml_op, ggml_status, ggml_tensor, ggml_threadpool, ggml_threadpool_params, ggml_type,
    ggml_type_traits,
};
