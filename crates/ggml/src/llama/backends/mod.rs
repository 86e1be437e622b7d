//! Where ggml's backends come from: linked into the program, or libraries beside it of which the
//! fitting ones are loaded. One `cfg`; both files offer the same function;
//! `missing` is what goes wrong.
//!
//! Loaded before llama.cpp is initialised, and seen to be there: without any, llama.cpp searches by
//! itself, and looks into the current folder, which may be anybody's.

#[cfg(any(feature = "dynamic-backends", test))]
mod beside;
#[cfg(not(feature = "dynamic-backends"))]
mod linked;
mod missing;

#[cfg(feature = "dynamic-backends")]
use beside::load;
#[cfg(not(feature = "dynamic-backends"))]
use linked::load;

pub use missing::NoBackends;

use llama_cpp_sys_2 as sys;

/// Loads the backends and initialises llama.cpp, once per process and before any other call of it.
pub(super) fn start() -> Result<(), NoBackends> {
    let searched = load()?;
    // SAFETY: a look-up in ggml's registry.
    if unsafe { sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU) }.is_null() {
        return Err(NoBackends { searched });
    }
    // SAFETY: once, by the caller, and before any other function of llama.cpp. There are backends,
    // so it looks for none.
    unsafe { sys::llama_backend_init() };
    Ok(())
}
