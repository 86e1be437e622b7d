//! Backends as libraries in one folder of the installation. ggml loads those of every kind of GPU
//! whose driver is there, and of the CPU's the best that the CPU can run.
//!
//! ggml's own search is not used: it looks into the current folder, which may be anybody's, and
//! into the folder the program was built in.
#![cfg_attr(
    not(feature = "dynamic-backends"),
    allow(dead_code, reason = "compiled without the feature only to be tested")
)]

use super::missing::NoBackends;
use llama_cpp_sys_2 as sys;
use std::env;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Names the folder; for builds that are not installed.
const FOLDER_VARIABLE: &str = "MOTLEY_BACKENDS";
/// From the folder the program is in. Every package has this shape.
const FROM_PROGRAM: &str = "../lib/motley";
/// How the names of libraries with CPU kernels begin.
const CPU_LIBRARY: &str = "libggml-cpu";

/// Loads the backends of the first folder that has kernels for the CPU; says where it looked.
pub(super) fn load() -> Result<Vec<String>, NoBackends> {
    let searched = folders();
    let found = searched.iter().find(|folder| has_cpu_kernels(folder));
    let path = found.and_then(|folder| CString::new(folder.as_os_str().as_encoded_bytes()).ok());
    let Some(path) = path else {
        return Err(NoBackends { searched: shown(&searched) });
    };
    // SAFETY: a NUL-terminated path. The libraries run with this program's rights, as the
    // program itself does, and are installed with it. Nothing of ggml has to run before.
    unsafe { sys::ggml_backend_load_all_from_path(path.as_ptr()) };
    Ok(shown(&searched))
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

fn shown(folders: &[PathBuf]) -> Vec<String> {
    folders.iter().map(|folder| folder.display().to_string()).collect()
}

fn has_cpu_kernels(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries
        .flatten()
        .any(|entry| entry.file_name().as_encoded_bytes().starts_with(CPU_LIBRARY.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Runtime, Seam};
    use std::process::Command;

    /// Set for the child that runs in the folder with the planted library.
    const CHILD: &str = "MOTLEY_TEST_PLANTED";
    /// A library that leaves a file in the current folder when it is loaded.
    const SOURCE: &str = "#include <stdio.h>\n\
        __attribute__((constructor)) static void left(void) {\n\
            FILE * file = fopen(\"loaded\", \"w\");\n\
            if (file) fclose(file);\n\
        }\n";

    #[test]
    fn a_library_planted_in_the_current_folder_is_not_loaded() {
        match env::var(CHILD).as_deref() {
            Ok("ours") => {
                // The folder of this test program has no backends, the current one seems to.
                assert!(load().is_err());
                Runtime::start(Seam::Absent).unwrap();
                assert!(!Path::new("loaded").exists(), "it was loaded");
            }
            Ok(_) => {
                // SAFETY: ggml's own search, to see that the planted library can be loaded.
                unsafe { sys::ggml_backend_load_all() };
                assert!(Path::new("loaded").exists(), "it is no library");
            }
            Err(_) => plant(),
        }
    }

    /// Compiles the library into a folder, and runs this test anew in it, either way.
    fn plant() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("planted.c");
        std::fs::write(&source, SOURCE).unwrap();
        let library = folder.path().join("libggml-cpu-planted.so");
        let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        assert!(compiled.unwrap().success());
        let name = "llama::backends::beside::tests::\
                    a_library_planted_in_the_current_folder_is_not_loaded";
        for way in ["ours", "ggml's"] {
            let ended = Command::new(env::current_exe().unwrap())
                .args([name, "--exact"])
                .current_dir(folder.path())
                .env(CHILD, way)
                .env_remove(FOLDER_VARIABLE)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ended.stdout);
            assert!(ended.status.success() && said.contains("1 passed"), "{way}: {said}");
        }
    }
}
