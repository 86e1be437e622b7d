//! Our registry, for the ggml that has loaded us; or none, and why it goes on without us.

use crate::chain;
use crate::models::Models;
use crate::say::say;
use crate::wishes::{self, Wishes};
use motley_ggml::hosted::{self, NotThisHost};
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Our registry, the same for every call; null leaves the host as it is.
pub(crate) extern "C" fn enter(caller: *const c_void) -> *mut c_void {
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
