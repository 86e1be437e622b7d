//! Whether the host's ggml is one we know: its operations, its tensors, one small product. What is
//! not recognised is left alone.

use super::caller::Library;
use super::error::NotThisHost;
use crate::api;
use crate::api::numbers::{HostNumbers, op_of};
use crate::compute::cpu;
use crate::compute::graph::Graph;
use crate::compute::stream::Stream;
use crate::compute::tensors::{Buffer, Tensors};
use std::ffi::CStr;

/// The last operation of releases with gated units, and of those before.
const LAST_OPS: [&CStr; 2] = [c"GLU", c"OPT_STEP_ADAMW"];
/// Bytes of ggml's own in front of every tensor.
const OBJECT_BYTES: usize = 32;

/// The host's numbers for operations; its last one ends them.
pub(super) fn numbers(library: &Library) -> Result<HostNumbers, NotThisHost> {
    let gated = !library.find(c"ggml_get_glu_op").is_null();
    let last = LAST_OPS[usize::from(!gated)];
    // SAFETY: a lookup in the host's registry; the version is a registry's first field.
    let api_version = unsafe {
        let device = api::ggml_backend_dev_by_type(api::GGML_BACKEND_DEVICE_TYPE_CPU);
        if device.is_null() {
            return Err(NotThisHost::NoCpu);
        }
        api::ggml_backend_dev_backend_reg(device).cast::<i32>().read()
    };
    let ended = std::cell::Cell::new(false);
    let name = |op| {
        if ended.get() {
            return None;
        }
        // SAFETY: every number up to the last operation has a name, and names are static.
        let name = unsafe { CStr::from_ptr(api::ggml_op_name(op)) };
        ended.set(name == last);
        Some(name)
    };
    let numbers = HostNumbers::of(api_version, name);
    let complete = numbers.are_complete();
    complete.then_some(numbers).ok_or(NotThisHost::Layout("list of operations"))
}

/// Whether tensors look as they do here.
pub(super) fn tensors() -> Result<(), NotThisHost> {
    let unknown = NotThisHost::Layout("tensor");
    let context = Tensors::new(8).ok_or(unknown.clone())?;
    let weight = context.tensor(1, [64, 48, 8]);
    let rows = context.tensor(api::GGML_TYPE_F32, [64, 1, 5]);
    let ids = context.tensor(api::GGML_TYPE_I32, [2, 5, 1]);
    // SAFETY: tensors of a live context; the name fits.
    let same = unsafe {
        api::ggml_set_name(weight, c"experts".as_ptr());
        let sources = [weight, rows, ids];
        let product = &*api::ggml_mul_mat_id(context.raw(), weight, rows, ids);
        let weight = &*weight;
        api::ggml_tensor_overhead() == OBJECT_BYTES + size_of::<api::ggml_tensor>()
            && weight.type_ == 1
            && weight.ne == [64, 48, 8, 1]
            && weight.nb[..3] == [2, 128, 128 * 48]
            && std::ptr::eq(api::ggml_get_name(weight), weight.name.as_ptr())
            && CStr::from_ptr(weight.name.as_ptr()) == c"experts"
            && product.src[..3] == sources
            && product.ne == [48, 2, 5, 1]
            && op_of(product.op) == api::GGML_OP_MUL_MAT_ID
            && op_of(weight.op) == api::GGML_OP_NONE
    };
    same.then_some(()).ok_or(unknown)
}

/// Whether the CPU backend has what is asked of it later.
pub(super) fn cpu_functions() -> Result<(), NotThisHost> {
    match cpu::missing_proc() {
        Some(name) => Err(NotThisHost::CpuFunction(name.to_string_lossy().into_owned())),
        None => Ok(()),
    }
}

/// Two experts, each a row of numbers, times one row of ones: sums that are known.
pub(super) fn product() -> Result<(), NotThisHost> {
    const WIDTH: usize = 32;
    let context = Tensors::new(8).ok_or(NotThisHost::Product)?;
    let weight = context.tensor(api::GGML_TYPE_F32, [WIDTH as i64, 1, 2]);
    let rows = context.tensor(api::GGML_TYPE_F32, [WIDTH as i64, 1, 1]);
    let ids = context.tensor(api::GGML_TYPE_I32, [2, 1, 1]);
    let values: Vec<f32> = (0..2 * WIDTH).map(|n| if n < WIDTH { 1.0 } else { 3.0 }).collect();
    let (ones, order) = (vec![1f32; WIDTH], [1i32, 0]);
    // SAFETY: tensors of a live context with memory of their own; sizes are those of the tensors.
    unsafe {
        let product = api::ggml_mul_mat_id(context.raw(), weight, rows, ids);
        let cpu = api::ggml_backend_cpu_buffer_type();
        let memory: Buffer = context.allocate(cpu).ok_or(NotThisHost::Product)?;
        api::ggml_backend_tensor_set(weight, values.as_ptr().cast(), 0, values.len() * 4);
        api::ggml_backend_tensor_set(rows, ones.as_ptr().cast(), 0, ones.len() * 4);
        api::ggml_backend_tensor_set(ids, order.as_ptr().cast(), 0, order.len() * 4);
        let mut graph = Graph::new();
        graph.expand(product);
        let stream = Stream::on_cpu().ok_or(NotThisHost::Product)?;
        let status = api::ggml_backend_graph_compute(stream.raw(), graph.raw());
        let sums = std::slice::from_raw_parts((*product).data.cast::<f32>(), 2);
        let right = status == api::GGML_STATUS_SUCCESS && sums == [3.0 * 32.0, 32.0];
        drop(memory);
        right.then_some(()).ok_or(NotThisHost::Product)
    }
}
