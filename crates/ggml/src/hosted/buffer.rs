//! Expert weights as the host hands them over: places in reserved address space that no byte ever
//! fills, because the guest knows the file they came from. What it does not know is kept.

use super::cpu_registry;
use super::guest::{BufferId, GUEST, HandedOver, HandedTensor, Taken};
use super::sizes::{TableSizes, Words, installed, words};
use crate::api;
use crate::seam::{claim, reserve};
use crate::system::memory;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Our type of buffers, of the device `device`.
pub(super) fn new_type(sizes: &TableSizes, device: Words) -> Words {
    let table = words(sizes.buffer_type + 2);
    let alignment = if sizes.buffer_type == 8 { 3 } else { 2 };
    // SAFETY: the table has room for its functions, the device and a context.
    unsafe {
        table.write(reserve::type_name as *mut c_void);
        table.add(1).write(allocate as *mut c_void);
        table.add(alignment).write(reserve::get_alignment as *mut c_void);
        table.add(sizes.buffer_type - 1).write(is_host as *mut c_void);
        table.add(sizes.buffer_type).write(device.cast());
    }
    table
}

/// Whether the block of `op`, which belongs to one, has its experts with us; a weight itself, too.
///
/// # Safety
/// `op` and all it descends from are live.
pub(super) unsafe fn holds_experts_of(op: *const api::ggml_tensor) -> bool {
    // SAFETY: by the caller.
    unsafe {
        let matmul = claim::opening_matmul(op);
        let weight = if matmul.is_null() { op } else { (*matmul).src[0].cast_const() };
        (*weight).buffer.is_null() || reserve::owns((*weight).buffer)
    }
}

unsafe extern "C" fn is_host(_: *mut c_void) -> bool {
    false
}

unsafe extern "C" fn allocate(buffer_type: *mut c_void, bytes: usize) -> *mut c_void {
    // The loader has mapped its files by now.
    cpu_registry::experts_are_ours(false);
    let Some(base) = reserve::address_space(bytes) else { return std::ptr::null_mut() };
    // SAFETY: the type is live, the functions take what they are called with.
    unsafe { new_buffer(buffer_type, base, bytes) }
}

/// # Safety
/// `base` are `bytes` bytes of address space that the buffer takes over.
unsafe fn new_buffer(buffer_type: *mut c_void, base: *mut c_void, bytes: usize) -> *mut c_void {
    type Init<const N: usize> =
        unsafe extern "C" fn(*mut c_void, Functions<N>, *mut c_void, usize) -> *mut c_void;
    let head = [
        free as *mut c_void,
        base_of as *mut c_void,
        std::ptr::null_mut(),
        memset as *mut c_void,
        set as *mut c_void,
        get as *mut c_void,
    ];
    let clear = clear as *mut c_void;
    let init = api::buffer_init_address();
    let mut short = [std::ptr::null_mut(); 9];
    let mut long = [std::ptr::null_mut(); 11];
    short[..6].copy_from_slice(&head);
    long[..6].copy_from_slice(&head);
    (short[7], long[9]) = (clear, clear);
    // SAFETY: the host's function takes a table of the measured length by value; the rest by the
    // caller.
    unsafe {
        if installed().buffer == 11 {
            let init = std::mem::transmute::<*const (), Init<11>>(init);
            init(buffer_type, Functions(long), base, bytes)
        } else {
            let init = std::mem::transmute::<*const (), Init<9>>(init);
            init(buffer_type, Functions(short), base, bytes)
        }
    }
}

/// A buffer's table, passed by value.
#[repr(C)]
struct Functions<const N: usize>([*mut c_void; N]);

unsafe extern "C" fn free(buffer: *mut c_void) {
    if let Some(guest) = GUEST.get() {
        let forget = AssertUnwindSafe(|| guest.forget(BufferId(buffer.addr())));
        let _ = catch_unwind(forget);
    }
    // SAFETY: base and size are what `allocate` reserved.
    unsafe {
        let bytes = api::ggml_backend_buffer_get_size(buffer.cast());
        memory::release(base_of(buffer), bytes);
    }
}

unsafe extern "C" fn base_of(buffer: *mut c_void) -> *mut c_void {
    // SAFETY: ggml passes one of our buffers: functions, type, context.
    unsafe { buffer.cast::<*mut c_void>().add(installed().buffer + 1).read() }
}

unsafe extern "C" fn set(
    buffer: *mut c_void,
    tensor: *mut api::ggml_tensor,
    data: *const c_void,
    offset: usize,
    bytes: usize,
) {
    // SAFETY: ggml passes a live tensor of the buffer and `bytes` bytes for it.
    let (tensor_of, data) =
        unsafe { (HandedTensor::of(tensor), std::slice::from_raw_parts(data.cast::<u8>(), bytes)) };
    let hand_over = |tensor: HandedTensor<'_>| {
        let Some(guest) = GUEST.get() else { return Taken::Copy };
        let handed = HandedOver { tensor, offset, bytes: data };
        let taken = AssertUnwindSafe(|| guest.hand_over(BufferId(buffer.addr()), &handed));
        catch_unwind(taken).unwrap_or(Taken::Copy)
    };
    match tensor_of.map_or(Taken::Copy, hand_over) {
        Taken::Elsewhere => {}
        // SAFETY: ggml checked offset and size against the tensor, which lies in the buffer.
        Taken::Copy => unsafe {
            let place = (*tensor).data.cast::<u8>().add(offset);
            std::ptr::copy_nonoverlapping(data.as_ptr(), place, bytes);
        },
    }
}

unsafe extern "C" fn get(
    buffer: *mut c_void,
    tensor: *const api::ggml_tensor,
    data: *mut c_void,
    offset: usize,
    bytes: usize,
) {
    // SAFETY: ggml passes a live tensor of the buffer and room for `bytes` bytes.
    unsafe {
        let out = std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes);
        if let Some((guest, handed)) = GUEST.get().zip(HandedTensor::of(tensor)) {
            let id = BufferId(buffer.addr());
            let read = AssertUnwindSafe(|| guest.read(id, &handed, offset, &mut *out));
            if catch_unwind(read).unwrap_or(false) {
                return;
            }
        }
        let place = (*tensor).data.cast::<u8>().add(offset);
        std::ptr::copy_nonoverlapping(place, out.as_mut_ptr(), bytes);
    }
}

unsafe extern "C" fn memset(
    _: *mut c_void,
    tensor: *mut api::ggml_tensor,
    value: u8,
    offset: usize,
    bytes: usize,
) {
    // SAFETY: ggml checked offset and size against the tensor, which lies in the buffer.
    unsafe { (*tensor).data.cast::<u8>().add(offset).write_bytes(value, bytes) }
}

/// Fresh pages are zero already; clearing would make them resident.
unsafe extern "C" fn clear(_: *mut c_void, _: u8) {}
