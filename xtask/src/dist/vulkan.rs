//! What Vulkan's backend is built with, in one folder: new headers from the crate that carries them,
//! SPIR-V's from the machine, the loader of the old system. Without it CMake would take all from the
//! machine's `/usr/include`, and headers of its newer C library with them.

use super::processor::Processor;
use super::tools::{SPIRV_HEADERS, output};
use crate::workspace_root;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Manifest that fetches the headers; Debian's may be older than ggml wants.
const HEADERS: &str = "build/vulkan-headers/Cargo.toml";

/// Makes the folder below `target_folder`, in the shape of Vulkan's SDK (`VULKAN_SDK`).
pub(super) fn make(target_folder: &Path, processor: &Processor, sysroot: &Path) -> Result<PathBuf> {
    let folder = target_folder.join(format!("dist-vulkan-{}", processor.name));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let (include, library) = (folder.join("include"), folder.join("lib"));
    fs::create_dir_all(&include)?;
    fs::create_dir_all(&library)?;
    for entry in fs::read_dir(headers()?)? {
        let entry = entry?;
        symlink(entry.path(), include.join(entry.file_name()))?;
    }
    symlink(SPIRV_HEADERS, include.join("spirv"))?;
    let loader = format!("usr/lib/{}/libvulkan.so.1", processor.gnu);
    symlink(sysroot.join(loader), library.join("libvulkan.so"))?;
    Ok(folder)
}

/// Folder of Vulkan's headers in the crate that carries them.
pub(crate) fn headers() -> Result<PathBuf> {
    let manifest = workspace_root().join(HEADERS);
    let mut ask = Command::new("cargo");
    ask.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let metadata: Value = serde_json::from_str(&output(&mut ask)?)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let carrier = packages.iter().find(|package| package["name"] == "vk-mem");
    let manifest = carrier.and_then(|carrier| carrier["manifest_path"].as_str());
    let include = Path::new(manifest.context("no vk-mem")?)
        .with_file_name("vendor")
        .join("Vulkan-Headers/include");
    ensure!(include.is_dir(), "{}: no Vulkan headers", include.display());
    Ok(include)
}
