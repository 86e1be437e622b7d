//! ggml's CPU backend as Motley uses it: found through its registry, so that
//! static builds and `dynamic-backends` builds take the same path.

use crate::api;
use crate::system::library;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

pub use super::levels::offered_features;

type SetThreads = unsafe extern "C" fn(api::ggml_backend_t, c_int);
type SetThreadpool = unsafe extern "C" fn(api::ggml_backend_t, *mut api::ggml_threadpool);
type SetAbort = unsafe extern "C" fn(api::ggml_backend_t, api::ggml_abort_callback, *mut c_void);
type PoolNew = unsafe extern "C" fn(*mut api::ggml_threadpool_params) -> *mut api::ggml_threadpool;
type PoolFree = unsafe extern "C" fn(*mut api::ggml_threadpool);
type ExtraBufts =
    unsafe extern "C" fn(api::ggml_backend_dev_t) -> *mut api::ggml_backend_buffer_type_t;
type Features = unsafe extern "C" fn(api::ggml_backend_reg_t) -> *const api::ggml_backend_feature;

/// The CPU registry's optional functions.
pub(crate) struct CpuProcs {
    pub(crate) set_threads: SetThreads,
    pub(crate) set_threadpool: SetThreadpool,
    pub(crate) set_abort: SetAbort,
    pub(crate) pool_new: PoolNew,
    pub(crate) pool_free: PoolFree,
    extra_bufts: ExtraBufts,
    features: Features,
}

/// The CPU backend's functions; panics when the build has no CPU backend, which
/// llama.cpp itself refuses as well.
pub(crate) fn procs() -> &'static CpuProcs {
    static PROCS: OnceLock<CpuProcs> = OnceLock::new();
    PROCS.get_or_init(|| {
        let reg = registry();
        // SAFETY: each name is one ggml-cpu answers with exactly this signature
        // (ggml-cpu.cpp, `ggml_backend_cpu_get_proc_address` of the pinned crate).
        unsafe {
            CpuProcs {
                set_threads: find(reg, c"ggml_backend_set_n_threads"),
                set_threadpool: find(reg, c"ggml_backend_cpu_set_threadpool"),
                set_abort: find(reg, c"ggml_backend_set_abort_callback"),
                pool_new: find(reg, c"ggml_threadpool_new"),
                pool_free: find(reg, c"ggml_threadpool_free"),
                extra_bufts: find(reg, c"ggml_backend_dev_get_extra_bufts"),
                features: find(reg, c"ggml_backend_get_features"),
            }
        }
    })
}

/// Buffer types in which the CPU keeps rearranged weights (repacking, AMX).
pub(crate) fn extra_buffer_types() -> Vec<api::ggml_backend_buffer_type_t> {
    extra_buffer_types_of(device())
}

/// The same of a device that is the CPU's.
pub(crate) fn extra_buffer_types_of(
    device: api::ggml_backend_dev_t,
) -> Vec<api::ggml_backend_buffer_type_t> {
    let mut types = Vec::new();
    // SAFETY: the list is null-terminated and lives as long as the registry.
    unsafe {
        let mut cursor = (procs().extra_bufts)(device);
        while !cursor.is_null() && !(*cursor).is_null() {
            types.push(*cursor);
            cursor = cursor.add(1);
        }
    }
    types
}

/// Instruction sets ggml's CPU kernels were built with, as ggml names them
/// (`AVX2`, `AMX_INT8`, `REPACK`, …).
pub fn built_features() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the list ends with a null name and is static.
    unsafe {
        let mut feature = (procs().features)(registry());
        while !feature.is_null() && !(*feature).name.is_null() {
            names.push(CStr::from_ptr((*feature).name).to_string_lossy().into_owned());
            feature = feature.add(1);
        }
    }
    names
}

/// Which of several builds of the CPU's kernels was loaded, by the processor ggml names it after
/// (`haswell`, `sapphirerapids`); `None` when they are part of the program.
pub fn loaded_variant() -> Option<String> {
    let function = procs().set_threads as *const c_void;
    // SAFETY: a function of this process.
    let path = unsafe { library::path_around(function) }?;
    variant_of(path.file_name()?.to_str()?).map(str::to_owned)
}

/// `haswell`, of `libggml-cpu-haswell.so`; Windows names it `ggml-cpu-haswell.dll`.
fn variant_of(library: &str) -> Option<&str> {
    let (name, _) = library.rsplit_once('.')?;
    name.strip_prefix("lib").unwrap_or(name).strip_prefix("ggml-cpu-")
}

/// What this CPU offers and the build leaves unused, as one sentence; `None` when
/// the build uses all that matters.
pub fn unused_cpu_level() -> Option<String> {
    let built = built_features();
    let missing: Vec<&str> =
        offered_features().into_iter().filter(|name| !built.iter().any(|b| b == name)).collect();
    if missing.is_empty() {
        return None;
    }
    let hint = if missing.iter().all(|name| name.starts_with("AMX")) {
        "build with clang 16 or gcc 13 for AMX"
    } else {
        "build on this machine with `-C target-cpu=native` (the project's default)"
    };
    Some(format!("this CPU has {} but the build does not use it; {hint}", missing.join(", ")))
}

pub(crate) fn device() -> api::ggml_backend_dev_t {
    // SAFETY: a lookup in ggml's registry.
    let device = unsafe { api::ggml_backend_dev_by_type(api::GGML_BACKEND_DEVICE_TYPE_CPU) };
    assert!(!device.is_null(), "llama.cpp was built without its CPU backend");
    device
}

pub(crate) fn registry() -> api::ggml_backend_reg_t {
    // SAFETY: `device` is live for the life of the process.
    unsafe { api::ggml_backend_dev_backend_reg(device()) }
}

/// The first function that [`procs`] would miss, in a ggml that is not the pinned one.
pub(crate) fn missing_proc() -> Option<&'static CStr> {
    let names = [
        c"ggml_backend_set_n_threads",
        c"ggml_backend_cpu_set_threadpool",
        c"ggml_backend_set_abort_callback",
        c"ggml_threadpool_new",
        c"ggml_threadpool_free",
        c"ggml_backend_dev_get_extra_bufts",
        c"ggml_backend_get_features",
    ];
    let registry = registry();
    names.into_iter().find(|name| {
        // SAFETY: the registry is live and the name ends.
        unsafe { api::ggml_backend_reg_get_proc_address(registry, name.as_ptr()).is_null() }
    })
}

/// # Safety
/// `T` must be the function-pointer type the CPU registry documents for `name`.
unsafe fn find<T: Copy>(reg: api::ggml_backend_reg_t, name: &CStr) -> T {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: `reg` is live; the pointer is checked before it becomes a function.
    unsafe {
        let found = api::ggml_backend_reg_get_proc_address(reg, name.as_ptr());
        assert!(!found.is_null(), "ggml's CPU backend has no {name:?}: is llama-cpp-sys-2 pinned?");
        std::mem::transmute_copy(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_named_by_its_library() {
        assert_eq!(variant_of("libggml-cpu-sapphirerapids.so"), Some("sapphirerapids"));
        assert_eq!(variant_of("ggml-cpu-haswell.dll"), Some("haswell"));
        assert_eq!(variant_of("motley"), None);
        assert_eq!(variant_of("libggml-vulkan.so"), None);
    }
}
