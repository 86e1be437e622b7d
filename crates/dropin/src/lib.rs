//! `libggml_motley`: Motley as a backend of an unchanged llama.cpp, loaded by
//! `GGML_BACKEND_PATH=libggml_motley.so`. Takes the routed experts of models that do not fit into
//! memory, or that GPUs of the host can share; everything else stays the host's.
//!
//! Modules, in reading order:
//! * `wishes`: what the variables ask for.
//! * `models`: the host's models, as its loader hands them over; `known`: those seen so far;
//!   `model`: one of them; `files`: which files the host has open.
//! * `decision`: what comes of a wish for a model here.
//! * `contexts`: blocks of the host's contexts, to the model they belong to.
//! * `chain`: a backend that was to be loaded in our place.
//! * `say`: lines for people.

#![allow(clippy::disallowed_methods, reason = "a door: it reads variables and files")]

mod chain;
mod contexts;
mod decision;
mod files;
mod known;
mod model;
mod models;
mod say;
mod wishes;

use models::Models;
use motley_ggml::hosted::{self, NotThisHost};
use say::say;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::OnceLock;
use wishes::Wishes;

/// What ggml calls when it has loaded us. The ggml that called is the one to work with, whatever
/// its file is called: found by where the call came from.
///
/// # Safety
/// Only a ggml that loads backends calls it.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_init() -> *mut c_void {
    core::arch::naked_asm!("mov rdi, [rsp]", "jmp {enter}", enter = sym enter)
}

/// The same.
///
/// # Safety
/// Only a ggml that loads backends calls it.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ggml_backend_init() -> *mut c_void {
    core::arch::naked_asm!("mov x0, x30", "b {enter}", enter = sym enter)
}

/// Our registry, the same for every call; null leaves the host as it is.
extern "C" fn enter(caller: *const c_void) -> *mut c_void {
    static ENTERED: OnceLock<usize> = OnceLock::new();
    let enter = || {
        load_other(caller);
        match catch_unwind(|| try_enter(caller)) {
            Ok(Ok(registry)) => registry.expose_provenance(),
            Ok(Err(why)) => {
                say(&format!("not taking part: {why}"));
                0
            }
            Err(_) => {
                say("not taking part: this library failed; please report it");
                0
            }
        }
    };
    let registry = *ENTERED.get_or_init(enter);
    if registry == 0 { null_mut() } else { std::ptr::with_exposed_provenance_mut(registry) }
}

/// Loads the backend that was to be loaded in our place.
fn load_other(caller: *const c_void) {
    let Some(path) = chain::other() else { return };
    // SAFETY: our caller is the ggml that loads us; the file is what its user named as a backend.
    if !unsafe { hosted::load_other(caller, &path) } {
        say(&format!("{}={}: cannot be loaded", chain::VARIABLE, path.to_string_lossy()));
    }
}

/// Why a host goes on without us.
#[derive(Debug, thiserror::Error)]
enum Left {
    #[error(transparent)]
    Host(#[from] NotThisHost),
    #[error(transparent)]
    Wishes(#[from] wishes::WishError),
    #[error("MOTLEY_OFF is set")]
    Off,
}

fn try_enter(caller: *const c_void) -> Result<*mut c_void, Left> {
    let wishes = Wishes::from_variables(|name| std::env::var(name).ok())?;
    if wishes.off {
        return Err(Left::Off);
    }
    // SAFETY: the address our caller returns to lies in the ggml that loads us, which never
    // unloads a backend's host.
    let host = unsafe { hosted::recognise(caller)? };
    if wishes.explains {
        let [buffer_type, buffer, backend, device] = host.tables;
        say(&format!(
            "recognised a ggml with interface {}, tables {buffer_type}/{buffer}/{backend}/{device}{}",
            host.api_version,
            if host.loads_lazily { "" } else { "; its loader reads whole files" },
        ));
    }
    let models = Models::new(host.runtime, wishes);
    Ok(hosted::enter(&host, Box::new(models))?)
}
