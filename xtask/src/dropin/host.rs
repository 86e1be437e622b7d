//! A stock llama.cpp to try the library with, built from a source package: `llama-server` and
//! `llama-bench` with backends in libraries of their own, as release builds have them.

use crate::dist::tools::run;
use crate::dist::vulkan;
use anyhow::{Context, Result};
use motley_testkit::{cache, venv};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package that carries llama.cpp whole, tools included.
const PACKAGE: &str = "llama-cpp-python";
const VERSION: &str = "0.3.36";
/// Where it has it.
const INSIDE: &str = "vendor/llama.cpp";

const TARGETS: [&str; 4] = ["llama-server", "llama-bench", "ggml-cpu", "ggml-vulkan"];

/// Kernels for any x86-64 of the last ten years: which ones they are is the host's business.
const SWITCHES: [&str; 18] = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_NATIVE=OFF",
    "-DGGML_SSE42=ON",
    "-DGGML_AVX=ON",
    "-DGGML_AVX2=ON",
    "-DGGML_FMA=ON",
    "-DGGML_F16C=ON",
    "-DGGML_BMI2=ON",
    "-DGGML_OPENMP=OFF",
    "-DGGML_VULKAN=ON",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_BUILD_WEBUI=OFF",
];

/// As it is named in tables.
pub(super) fn name() -> String {
    format!("llama-server from {PACKAGE} {VERSION}")
}

/// Folder of the programs, built if they are not there; about a quarter of an hour on two cores.
pub(super) fn programs() -> Result<PathBuf> {
    let folder = cache::models_folder()?.with_file_name(format!("{PACKAGE}-{VERSION}"));
    if !folder.join("CMakeLists.txt").exists() {
        unpack(&folder)?;
    }
    let build = folder.join("build");
    let headers = vulkan::headers()?;
    let mut configure = cmake(&headers);
    configure.arg("-S").arg(&folder).arg("-B").arg(&build).args(SWITCHES);
    run(&mut configure)?;
    run(cmake(&headers).arg("--build").arg(&build).args(["--parallel", "--target"]).args(TARGETS))?;
    Ok(build.join("bin"))
}

/// Fetches the package and takes llama.cpp out of it.
fn unpack(folder: &Path) -> Result<()> {
    let python = venv::python("source-venv", &["scikit-build-core"], "scikit_build_core")?;
    let scratch = tempfile::tempdir()?;
    // Without isolation: nothing of it is built, only its name and version are asked for.
    let what = ["download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary=:all:"];
    run(Command::new(python)
        .args(["-m", "pip"])
        .args(what)
        .arg(format!("{PACKAGE}=={VERSION}"))
        .arg("--dest")
        .arg(scratch.path()))?;
    let file = fs::read_dir(scratch.path())?.next().context("pip fetched nothing")??.path();
    let name = file.file_name().and_then(|name| name.to_str()).context("no name")?;
    let top = name.strip_suffix(".tar.gz").context("not a tar.gz")?;
    fs::create_dir_all(folder)?;
    run(Command::new("tar")
        .args(["--extract", "--strip-components=3", "--file"])
        .arg(&file)
        .arg("--directory")
        .arg(folder)
        .arg(format!("{top}/{INSIDE}")))
}

fn cmake(headers: &Path) -> Command {
    let mut command = Command::new("cmake");
    command.env("CPLUS_INCLUDE_PATH", headers).env("C_INCLUDE_PATH", headers);
    command
}
