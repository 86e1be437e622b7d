//! Backends as libraries in one folder of the installation. ggml loads those of every kind of GPU
//! whose driver is there, and of the CPU's the best that the CPU can run.
//!
//! ggml's own search is not used: it looks into the current folder, which may be anybody's, and
//! into the folder the program was built in.

use super::NoBackends;
use llama_cpp_sys_2 as sys;
use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names the folder; for builds that are not installed.
const FOLDER_VARIABLE: &str = "MOTLEY_BACKENDS";
/// From the folder the program is in. Every package has this shape.
const FROM_PROGRAM: &str = "../lib/motley";
/// How the names of libraries with CPU kernels begin.
const CPU_LIBRARY: &str = "libggml-cpu";

/// Loads the backends of the first folder that has kernels for the CPU. ggml is initialised.
pub(in crate::llama) fn load() -> Result<(), NoBackends> {
    let searched = folders();
    let found = searched.iter().find(|folder| has_cpu_kernels(folder));
    let path = found.and_then(|folder| CString::new(folder.as_os_str().as_bytes()).ok());
    let Some(path) = path else {
        let searched = searched.iter().map(|folder| folder.display().to_string()).collect();
        return Err(NoBackends { searched });
    };
    // SAFETY: a NUL-terminated path. The libraries run with this program's rights, as the
    // program itself does, and are installed with it.
    unsafe { sys::ggml_backend_load_all_from_path(path.as_ptr()) };
    Ok(())
}

/// Where the libraries may be: where the variable says, else by the program's own place.
fn folders() -> Vec<PathBuf> {
    if let Some(folder) = env::var_os(FOLDER_VARIABLE) {
        return vec![folder.into()];
    }
    let program = env::current_exe().unwrap_or_default();
    let Some(folder) = program.parent() else { return Vec::new() };
    vec![folder.join(FROM_PROGRAM), folder.to_owned()]
}

fn has_cpu_kernels(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| entry.file_name().as_bytes().starts_with(CPU_LIBRARY.as_bytes()))
}
