//! Our registry and its devices, in tables as long as the host's.

use super::guest::{GUEST, HandedTensor};
use super::sizes::{TableSizes, Words, installed, words};
use super::{buffer, cpu_registry, stream};
use crate::api;
use crate::api::abi::Device;
use crate::api::numbers::{op_of, write_props};
use crate::seam::{accelerator, claim};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

const NAME: &CStr = c"MOTLEY";
const DESCRIPTION: &CStr = c"routed experts";

/// What we registered. Lives until the process ends, as ggml's own do.
struct Ours {
    registry: Words,
    holds: Words,
    buffer_type: Words,
}

// SAFETY: written before anybody else sees them, then only read.
unsafe impl Send for Ours {}
// SAFETY: as above.
unsafe impl Sync for Ours {}

static OURS: OnceLock<Ours> = OnceLock::new();

/// The registry; the same for every call.
pub(super) fn ours() -> Words {
    all().registry
}

/// The type in which experts are held.
fn buffer_type() -> Words {
    all().buffer_type
}

fn all() -> &'static Ours {
    OURS.get_or_init(|| {
        let sizes = installed();
        let registry = words(6);
        let (holds, runs) = (device(&sizes, registry, true), device(&sizes, registry, false));
        // SAFETY: a device's context comes behind its registry: for one that holds, the one that
        // runs, whose streams it makes.
        unsafe { holds.add(sizes.device + 1).write(runs.cast()) };
        let buffer_type = buffer::new_type(&sizes, holds);
        // SAFETY: six words: the version, four functions, a context.
        unsafe {
            registry.cast::<i32>().write(sizes.api_version);
            registry.add(1).write(registry_name as *mut c_void);
            registry.add(2).write(device_count as *mut c_void);
            registry.add(3).write(device_at as *mut c_void);
            registry.add(4).write(proc_address as *mut c_void);
        }
        Ours { registry, holds, buffer_type }
    })
}

fn device(sizes: &TableSizes, registry: Words, holds: bool) -> Words {
    let table = words(sizes.device + 2);
    let functions: [(usize, *mut c_void); 9] = [
        (0, device_name as *mut c_void),
        (1, description as *mut c_void),
        (2, accelerator::get_memory as *mut c_void),
        (3, accelerator::get_type as *mut c_void),
        (4, props as *mut c_void),
        (5, stream::init_backend as *mut c_void),
        (6, if holds { held_type as *mut c_void } else { host_type as *mut c_void }),
        (9, if holds { holds_op as *mut c_void } else { runs_op as *mut c_void }),
        (10, supports_type as *mut c_void),
    ];
    // SAFETY: the table has room for its functions, the registry and a context.
    unsafe {
        for (at, function) in functions {
            table.add(at).write(function);
        }
        table.add(sizes.device).write(registry.cast());
    }
    table
}

unsafe extern "C" fn registry_name(_: *mut c_void) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn device_count(_: *mut c_void) -> usize {
    1
}

unsafe extern "C" fn device_at(_: *mut c_void, _: usize) -> *mut c_void {
    all().holds.cast()
}

unsafe extern "C" fn proc_address(_: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: ggml passes a NUL-terminated name.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"ggml_backend_set_n_threads" => stream::set_threads as *mut c_void,
        b"ggml_backend_set_abort_callback" => stream::set_abort as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn device_name(_: *mut c_void) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn description(_: *mut c_void) -> *const c_char {
    DESCRIPTION.as_ptr()
}

unsafe extern "C" fn props(_: *mut Device, place: *mut api::ggml_backend_dev_props) {
    let mut reported = accelerator::props(NAME, DESCRIPTION);
    reported.caps.mmap_support = true;
    // SAFETY: ggml passes a valid place.
    unsafe { write_props(place, reported) };
}

unsafe extern "C" fn held_type(_: *mut c_void) -> *mut c_void {
    buffer_type().cast()
}

unsafe extern "C" fn host_type(_: *mut c_void) -> api::ggml_backend_buffer_type_t {
    // SAFETY: returns a static of ggml's.
    unsafe { api::ggml_backend_cpu_buffer_type() }
}

/// The loader asks whether a weight may live with us.
unsafe extern "C" fn holds_op(_: *mut c_void, op: *const api::ggml_tensor) -> bool {
    // SAFETY: ggml asks about live tensors.
    let weight = unsafe {
        if op_of((*op).op) != api::GGML_OP_MUL_MAT_ID || !claim::belongs_to_block(op) {
            return false;
        }
        HandedTensor::of((*op).src[0])
    };
    let Some((guest, weight)) = GUEST.get().zip(weight) else { return false };
    let wanted = catch_unwind(AssertUnwindSafe(|| guest.wants(&weight))).unwrap_or(false);
    if wanted {
        cpu_registry::experts_are_ours(true);
    }
    wanted
}

/// The scheduler asks whether we compute an operation: of blocks whose experts we hold.
unsafe extern "C" fn runs_op(_: *mut c_void, op: *const api::ggml_tensor) -> bool {
    // SAFETY: ggml asks about live tensors.
    unsafe { claim::belongs_to_block(op) && buffer::holds_experts_of(op) }
}

unsafe extern "C" fn supports_type(
    _: *mut c_void,
    buffer_type: api::ggml_backend_buffer_type_t,
) -> bool {
    // SAFETY: ggml passes a live buffer type.
    std::ptr::addr_eq(buffer_type, self::buffer_type())
        || unsafe { api::ggml_backend_buft_is_host(buffer_type) }
}
