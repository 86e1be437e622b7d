//! Motley as a guest in another program's llama.cpp. That program loads a library of ours as one
//! more backend; here its ggml is found, measured and met on its own terms. Links no ggml: every
//! function is looked up in the host, and every table has the host's own length.
//!
//! Two devices, because llama.cpp asks one question of both kinds: the registered one *holds*
//! expert weights (its buffer type is ours, so the loader hands them over), the other *runs* their
//! blocks (its buffer type is the CPU's, so activations stay in host memory).
//!
//! Modules, in reading order:
//! * `guest`: what the guest decides, as a trait.
//! * `error`: why a host is left alone.
//! * `caller`: the ggml that called us, and its functions.
//! * `check`: whether it is one we know: its tables, its tensors, one product.
//! * `sizes`: how long its tables are.
//! * `registry`: our registry and devices in its tables.
//! * `buffer`: expert weights as it hands them over.
//! * `stream`: blocks as it sends them.
//! * `cpu_registry`: questions its loader and contexts ask of the CPU, answered on the way.
//! * `trial`: a host's ggml loaded to see what it does.
//! * [`maps`]: which file lies at an address.

mod buffer;
mod caller;
mod check;
mod cpu_registry;
mod error;
mod guest;
pub mod maps;
mod registry;
mod sizes;
mod stream;
mod trial;

pub use caller::load_other;
pub use error::NotThisHost;
pub use guest::{BufferId, Guest, HandedOver, HandedTensor, Taken};
pub use trial::load_backends;

use crate::api::numbers::HostNumbers;
use crate::seam::runtime::{Runtime, Seam};
use guest::GUEST;
use std::ffi::c_void;

/// A host that was recognised.
#[derive(Debug, Clone)]
pub struct Host {
    /// Version of the interface between ggml and its backends.
    pub api_version: i32,
    /// Functions in its tables: of buffer types, buffers, backends, devices.
    pub tables: [usize; 4],
    /// Whether its loader can be kept from reading whole files at once.
    pub loads_lazily: bool,
    /// ggml is there, and so are its devices.
    pub runtime: Runtime,
}

/// Recognises the ggml that called from the address `caller`. Changes nothing in it.
///
/// # Safety
/// `caller` is an address inside the library that loaded us, which stays loaded.
pub unsafe fn recognise(caller: *const c_void) -> Result<Host, NotThisHost> {
    // SAFETY: by the caller.
    let library = unsafe { caller::find(caller)? };
    let numbers = check::numbers(&library)?;
    HostNumbers::install(numbers);
    let sizes = sizes::measure(&library)?;
    check::tensors()?;
    check::cpu_functions()?;
    check::product()?;
    let [buffer_type, buffer, backend, device] = sizes.functions();
    sizes.install();
    Ok(Host {
        api_version: sizes::installed().api_version,
        tables: [buffer_type, buffer, backend, device],
        loads_lazily: cpu_registry::can_answer(),
        runtime: Runtime::initialised(Seam::Registered),
    })
}

/// Our registry in the tables of a recognised host, for `guest`; the same one for every call.
pub fn enter(_: &Host, guest: Box<dyn Guest>) -> Result<*mut c_void, NotThisHost> {
    GUEST.set(guest).map_err(|_| NotThisHost::Twice)?;
    cpu_registry::answer();
    Ok(registry::ours().cast())
}
