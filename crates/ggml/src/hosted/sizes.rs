//! How many functions the host's tables have. The version of its interface does not tell (four
//! lengths are known under three versions), so they are measured on objects of its CPU backend:
//! each has a known pointer right behind its functions.

use super::caller::Library;
use super::error::NotThisHost;
use crate::api;
use crate::compute::cpu;
use crate::compute::stream::Stream;
use crate::compute::tensors::Buffer;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Functions in each of the host's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableSizes {
    pub(super) api_version: c_int,
    pub(super) buffer_type: usize,
    pub(super) buffer: usize,
    pub(super) backend: usize,
    pub(super) device: usize,
}

static SIZES: OnceLock<TableSizes> = OnceLock::new();

/// Words of a table and what follows it.
pub(super) type Words = *mut *mut c_void;

/// Room for `words` words, all null; it lives until somebody frees it.
pub(super) fn words(words: usize) -> Words {
    Box::leak(vec![std::ptr::null_mut(); words].into_boxed_slice()).as_mut_ptr()
}

/// Bytes of the buffer that is measured.
const BUFFER_BYTES: usize = 4096;

impl TableSizes {
    pub(super) fn functions(&self) -> [usize; 4] {
        [self.buffer_type, self.buffer, self.backend, self.device]
    }

    /// From now on these are the host's.
    pub(super) fn install(self) {
        let _ = SIZES.set(self);
    }

    /// Where a backend computes a graph: two asynchronous copies came before it in longer tables.
    pub(super) fn graph_compute(&self) -> usize {
        if self.backend == 16 { 12 } else { 10 }
    }

    fn is_known(&self) -> bool {
        matches!(self.buffer_type, 6 | 8)
            && matches!(self.buffer, 9 | 11)
            && matches!(self.backend, 13 | 14 | 16)
            && self.device == 15
            && (1..=3).contains(&self.api_version)
    }
}

/// The host's.
///
/// # Panics
/// Before [`TableSizes::install`].
pub(super) fn installed() -> TableSizes {
    *SIZES.get().expect("a host is measured before it is entered")
}

/// Measures the host's tables.
pub(super) fn measure(library: &Library) -> Result<TableSizes, NotThisHost> {
    // SAFETY: a lookup in the host's registry.
    let device = unsafe { api::ggml_backend_dev_by_type(api::GGML_BACKEND_DEVICE_TYPE_CPU) };
    if device.is_null() {
        return Err(NotThisHost::NoCpu);
    }
    // SAFETY: the device is live; its registry begins with a version and a function that names it.
    let (registry, api_version) = unsafe {
        let registry = api::ggml_backend_dev_backend_reg(device);
        type Name = unsafe extern "C" fn(api::ggml_backend_reg_t) -> *const std::ffi::c_char;
        let name = word(registry.cast(), 1);
        let named = !name.is_null()
            && std::mem::transmute::<*mut c_void, Name>(name)(registry)
                == api::ggml_backend_reg_name(registry);
        if !named {
            return Err(NotThisHost::Layout("registry"));
        }
        (registry, registry.cast::<c_int>().read())
    };
    let sizes = TableSizes {
        api_version,
        buffer_type: buffer_type(library, device)?,
        buffer: buffer(device)?,
        backend: backend(device)?,
        // SAFETY: a live device, whose registry comes right after its functions.
        device: unsafe { first(device.cast(), 10..24, registry.cast()) }
            .ok_or(NotThisHost::Layout("device"))?,
    };
    sizes.is_known().then_some(sizes).ok_or(NotThisHost::Layout("table of functions"))
}

/// Types in which the CPU keeps rearranged weights name their device; its plain type does not.
fn buffer_type(library: &Library, device: api::ggml_backend_dev_t) -> Result<usize, NotThisHost> {
    match cpu::extra_buffer_types_of(device).first() {
        // SAFETY: a live buffer type, whose device comes right after its functions.
        Some(&extra) => unsafe { first(extra.cast(), 4..16, device.cast()) }
            .ok_or(NotThisHost::Layout("buffer type")),
        None => {
            let newer = !library.find(c"ggml_backend_buft_alloc_buffer_n").is_null();
            Ok(if newer { 8 } else { 6 })
        }
    }
}

fn buffer(device: api::ggml_backend_dev_t) -> Result<usize, NotThisHost> {
    let unknown = NotThisHost::Layout("buffer");
    // SAFETY: the device is live, and so is its type; the buffer is ours until it is dropped. Its
    // type, context, size and usage come right after its functions.
    unsafe {
        let buffer_type = api::ggml_backend_dev_buffer_type(device);
        let buffer = Buffer::new(buffer_type, BUFFER_BYTES).ok_or(unknown.clone())?;
        api::ggml_backend_buffer_set_usage(buffer.raw(), api::GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        let at = first(buffer.raw().cast(), 6..16, buffer_type.cast()).ok_or(unknown.clone())?;
        let size = word(buffer.raw().cast(), at + 2).addr();
        let usage = buffer.raw().cast::<*mut c_void>().add(at + 3).cast::<c_int>().read();
        let fits =
            size == buffer.size_bytes() && usage as u32 == api::GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
        fits.then_some(at).ok_or(unknown)
    }
}

fn backend(device: api::ggml_backend_dev_t) -> Result<usize, NotThisHost> {
    let unknown = NotThisHost::Layout("backend");
    let stream = Stream::on_cpu().ok_or(unknown.clone())?;
    // SAFETY: a live backend: an id, its functions, its device.
    let at = unsafe { first(stream.raw().cast(), 9..25, device.cast()) };
    at.map(|at| at - 1).ok_or(unknown)
}

/// The first of these words of `object` that is `pointer`.
///
/// # Safety
/// The object has a word that is, or as many words as the range.
unsafe fn first(
    object: *const c_void,
    range: std::ops::Range<usize>,
    pointer: *const c_void,
) -> Option<usize> {
    // SAFETY: by the caller.
    range.into_iter().find(|&at| std::ptr::eq(unsafe { word(object, at) }, pointer))
}

/// # Safety
/// The object has more than `at` words.
unsafe fn word(object: *const c_void, at: usize) -> *mut c_void {
    // SAFETY: by the caller.
    unsafe { object.cast::<*mut c_void>().add(at).read() }
}

#[cfg(all(test, feature = "llama"))]
mod tests {
    use super::*;
    use crate::api::abi;
    use crate::hosted::check;
    use crate::seam::runtime::{Runtime, Seam};

    /// The linked ggml as a host: what is measured is what its header says.
    #[test]
    fn tables_are_measured_as_the_header_has_them() {
        Runtime::start(Seam::Registered).unwrap();
        let sizes = measure(&Library::this_program()).unwrap();
        let functions = |bytes: usize| bytes / size_of::<usize>();
        assert_eq!(sizes.api_version, abi::API_VERSION);
        assert_eq!(
            sizes.functions(),
            [
                functions(size_of::<abi::BufferTypeInterface>()),
                functions(size_of::<abi::BufferInterface>()),
                functions(size_of::<abi::BackendInterface>()),
                functions(size_of::<abi::DeviceInterface>()),
            ]
        );
        let computes = std::mem::offset_of!(abi::BackendInterface, graph_compute);
        assert_eq!(sizes.graph_compute(), functions(computes));
        check::tensors().unwrap();
        check::cpu_functions().unwrap();
        check::product().unwrap();
    }

    #[test]
    fn other_lengths_are_not_known() {
        let known =
            TableSizes { api_version: 2, buffer_type: 6, buffer: 9, backend: 14, device: 15 };
        assert!(known.is_known());
        assert!(!TableSizes { backend: 15, ..known }.is_known());
        assert!(!TableSizes { device: 16, ..known }.is_known());
        assert!(!TableSizes { api_version: 4, ..known }.is_known());
    }
}
