//! Synthetic values for weights and rows that are only measured: the same every time.

use llama_cpp_sys_2 as sys;
use std::ptr::null;

/// Rows of different synthetic weights; the others repeat them.
const DISTINCT_ROWS: usize = 16;

/// Writes all of a tensor.
pub(super) fn set(tensor: *mut sys::ggml_tensor, data: *const std::ffi::c_void, bytes: usize) {
    // SAFETY: callers pass data of exactly the tensor's size; its buffer is allocated.
    unsafe {
        assert_eq!(sys::ggml_nbytes(tensor), bytes, "data of the tensor's size");
        sys::ggml_backend_tensor_set(tensor, data, 0, bytes);
    }
}

/// Synthetic weights of the size and type of `weight`: [`DISTINCT_ROWS`] quantised rows, again and
/// again.
pub(super) fn weights(weight: &sys::ggml_tensor) -> Vec<u8> {
    let row = weight.ne[0] as usize;
    let values = bell(row * DISTINCT_ROWS);
    // SAFETY: the buffer has room for the rows ggml writes.
    let (total, rows) = unsafe {
        let mut rows = vec![0_u8; sys::ggml_row_size(weight.type_, row as i64) * DISTINCT_ROWS];
        let (source, target) = (values.as_ptr(), rows.as_mut_ptr().cast());
        let (count, row) = (DISTINCT_ROWS as i64, row as i64);
        sys::ggml_quantize_chunk(weight.type_, source, target, 0, count, row, null());
        (sys::ggml_nbytes(weight), rows)
    };
    let mut all = rows.repeat(total.div_ceil(rows.len()));
    all.truncate(total);
    all
}

/// Values around zero of the size weights have: sums of uniform ones from a fixed seed.
pub(super) fn bell(count: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| 0.05 * (uniform() + uniform() + uniform())).collect()
}
