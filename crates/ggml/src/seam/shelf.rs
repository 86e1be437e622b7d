//! The device that reserved weights belong to. It is not registered: llama.cpp meets
//! it only while loading, as the device of [`super::reserve`]'s buffer type, and takes
//! it for a GPU to which weights are uploaded in pieces of 1 MiB. The uploads end in
//! the buffer type's `set_tensor`, which drops them.
//!
//! Without it the loader would stage each tensor whole, and fill that staging memory
//! byte by byte: 7 s for 8 GB of experts that nobody reads.

use super::accelerator;
use crate::api;
use crate::api::abi::{
    Backend, BackendInterface, BufferType, BufferTypeInterface, Device, DeviceInterface, Event,
};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

const NAME: &CStr = c"MOTLEY_SHELF";

/// A shelf; lives until the process ends.
fn new() -> *mut Device {
    Box::into_raw(Box::new(Device {
        iface: DeviceInterface {
            get_name,
            get_description: get_name,
            get_memory: accelerator::get_memory,
            get_type: accelerator::get_type,
            get_props,
            init_backend,
            get_buffer_type,
            get_host_buffer_type: Some(get_host_buffer_type),
            buffer_from_host_ptr: None,
            supports_op,
            supports_buft,
            offload_op: None,
            event_new: Some(event_new),
            event_free: Some(event_free),
            event_synchronize: Some(event_synchronize),
        },
        reg: null_mut(),
        context: null_mut(),
    }))
}

/// What tells the buffer types of a shelf from each other.
pub(crate) struct OwnType {
    pub(crate) get_name: unsafe extern "C" fn(*mut BufferType) -> *const c_char,
    pub(crate) alloc_buffer:
        unsafe extern "C" fn(*mut BufferType, usize) -> api::ggml_backend_buffer_t,
    pub(crate) get_alignment: unsafe extern "C" fn(*mut BufferType) -> usize,
    pub(crate) is_host: unsafe extern "C" fn(*mut BufferType) -> bool,
    /// Handed to none of them but through the type.
    pub(crate) context: *mut c_void,
}

impl OwnType {
    /// The type as the default one of a shelf of its own: the loader uploads only to a device's
    /// default. Both live until somebody frees them.
    pub(crate) fn on_a_shelf(self) -> (*mut BufferType, *mut Device) {
        let Self { get_name, alloc_buffer, get_alignment, is_host, context } = self;
        let device = new();
        let buft = Box::into_raw(Box::new(BufferType {
            iface: BufferTypeInterface {
                get_name,
                alloc_buffer,
                alloc_buffer_n: None,
                get_alignment,
                get_max_size: None,
                get_alloc_size: None,
                get_alloc_size_n: None,
                is_host: Some(is_host),
            },
            device,
            context,
        }));
        // SAFETY: the shelf was just made and is not shared yet.
        unsafe { (*device).context = buft.cast() };
        (buft, device)
    }
}

unsafe extern "C" fn get_name(_: *mut Device) -> *const c_char {
    NAME.as_ptr()
}

/// What the loader asks for before it uploads in pieces.
unsafe extern "C" fn get_props(_: *mut Device, props: *mut api::ggml_backend_dev_props) {
    let mut reported = accelerator::props(NAME, NAME);
    reported.caps.async_ = true;
    reported.caps.host_buffer = true;
    reported.caps.events = true;
    // SAFETY: ggml passes a valid place.
    unsafe { *props = reported };
}

unsafe extern "C" fn get_buffer_type(device: *mut Device) -> api::ggml_backend_buffer_type_t {
    // SAFETY: the context is the buffer type it was made with.
    unsafe { (*device).context.cast() }
}

unsafe extern "C" fn get_host_buffer_type(_: *mut Device) -> api::ggml_backend_buffer_type_t {
    // SAFETY: returns a static of ggml's.
    unsafe { api::ggml_backend_cpu_buffer_type() }
}

/// It computes nothing: blocks run on the registered device.
unsafe extern "C" fn supports_op(_: *mut Device, _: *const api::ggml_tensor) -> bool {
    false
}

unsafe extern "C" fn supports_buft(
    device: *mut Device,
    buft: api::ggml_backend_buffer_type_t,
) -> bool {
    // SAFETY: ggml passes our device.
    buft == unsafe { get_buffer_type(device) }
}

static GUID: [u8; 16] = *b"motley-shelf-001";

unsafe extern "C" fn init_backend(device: *mut Device, _: *const c_char) -> *mut Backend {
    let mut iface = BackendInterface::synchronous(backend_name, free, graph_compute);
    iface.event_record = Some(event_record);
    Box::into_raw(Box::new(Backend { guid: &GUID, iface, device, context: null_mut() }))
}

unsafe extern "C" fn backend_name(_: *mut Backend) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "C" fn free(backend: *mut Backend) {
    // SAFETY: the box was made in `init_backend`; ggml frees a backend once.
    drop(unsafe { Box::from_raw(backend) });
}

unsafe extern "C" fn graph_compute(_: *mut Backend, _: *mut api::ggml_cgraph) -> api::ggml_status {
    api::GGML_STATUS_FAILED
}

unsafe extern "C" fn event_new(device: *mut Device) -> *mut Event {
    Box::into_raw(Box::new(Event { device, context: null_mut() }))
}

unsafe extern "C" fn event_free(_: *mut Device, event: *mut Event) {
    // SAFETY: the box was made in `event_new`; ggml frees an event once.
    drop(unsafe { Box::from_raw(event) });
}

/// Nothing is ever pending: an upload is over when it returns.
unsafe extern "C" fn event_synchronize(_: *mut Device, _: *mut Event) {}

unsafe extern "C" fn event_record(_: *mut Backend, _: *mut Event) {}
