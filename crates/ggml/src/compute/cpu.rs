//! ggml's CPU backend as Motley uses it: found through its registry, so that
//! static builds and `dynamic-backends` builds take the same path.

use crate::api;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

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
    // SAFETY: all zero is a value of this struct of pointers.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `place` is written, and its name lives as long as the library is loaded.
    let path = unsafe {
        if libc::dladdr(function, &mut place) == 0 || place.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(place.dli_fname).to_string_lossy()
    };
    variant_of(&path).map(str::to_owned)
}

/// `haswell`, of `/usr/lib/motley/libggml-cpu-haswell.so`.
fn variant_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix("libggml-cpu-")?.strip_suffix(".so")
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

/// The levels that change speed by tens of percent, if the CPU and system have them, as
/// ggml names them.
#[cfg(target_arch = "x86_64")]
pub fn offered_features() -> Vec<&'static str> {
    let mut offered = Vec::new();
    if is_x86_feature_detected!("avx2") {
        offered.push("AVX2");
    }
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
        offered.push("AVX512");
    }
    if is_x86_feature_detected!("avx512vnni") {
        offered.push("AVX512_VNNI");
    }
    if has_amx_int8() {
        offered.push("AMX_INT8");
    }
    offered
}

/// Not known beside x86, where the build follows the CPU.
#[cfg(not(target_arch = "x86_64"))]
pub fn offered_features() -> Vec<&'static str> {
    Vec::new()
}

/// CPUID leaf 7: bit 24 of EDX is AMX-TILE, bit 25 AMX-INT8.
#[cfg(target_arch = "x86_64")]
fn has_amx_int8() -> bool {
    let edx = std::arch::x86_64::__cpuid_count(7, 0).edx;
    edx & (1 << 24) != 0 && edx & (1 << 25) != 0
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
        let path = "/usr/lib/motley/libggml-cpu-sapphirerapids.so";
        assert_eq!(variant_of(path), Some("sapphirerapids"));
        assert_eq!(variant_of("/usr/bin/motley"), None);
        assert_eq!(variant_of("libggml-vulkan.so"), None);
    }
}
