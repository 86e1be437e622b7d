//! Which llama.cpp this is, as it says itself. Starts nothing.

use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, c_char};

/// The crate that carries llama.cpp's sources, as `Cargo.toml` pins it. The sources come without
/// their history, so this says more exactly than [`llama`] which ones they are.
pub const CRATE: &str = "llama-cpp-sys-2 0.1.160";

/// llama.cpp's version.
pub fn llama() -> String {
    // SAFETY: a function without conditions, and a text that lives as long as the program.
    unsafe { text(sys::llama_version()) }
}

/// ggml's version.
pub fn ggml() -> String {
    // SAFETY: as in `llama`.
    unsafe { text(sys::ggml_version()) }
}

/// # Safety
/// `text` is a NUL-terminated string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_is_the_one_that_is_pinned() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let (name, version) = CRATE.split_once(' ').unwrap();
        assert!(manifest.contains(&format!("{name} = {{ version = \"={version}\"")), "{CRATE}");
    }

    #[test]
    fn llama_and_ggml_have_versions_with_dots() {
        for version in [llama(), ggml()] {
            assert!(version.split('.').count() >= 3, "{version}");
        }
    }
}
