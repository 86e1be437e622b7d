//! Backends that are part of the program: nothing to look for.

use super::NoBackends;

/// Does nothing.
pub(in crate::llama) fn load() -> Result<(), NoBackends> {
    Ok(())
}
