//! The program and ggml's libraries, built with this machine's compilers against an old system's
//! libraries (`sysroot`), without paths of this machine in them as far as compilers can
//! leave them out.

use super::processor::Processor;
use super::tools::{self, AUDITABLE, CC, CXX, output};
use super::{sysroot, vulkan};
use crate::{dropin, workspace_root};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The binary's name.
pub const BINARY: &str = "motley";
/// Links for processors other than this machine's.
const LINKER: &str = "-fuse-ld=lld";
/// The feature that makes ggml's backends libraries of their own.
const BACKENDS: &str = "dynamic-backends";
/// Where the program looks for its libraries, from where it lies; `crates/ggml` looks there too.
const LIBRARIES: &str = "$ORIGIN/../lib/motley";
/// Section of a binary that holds the list of its crates, compressed.
const SECTION: &[u8] = b".dep-v0";

/// What cargo says of this workspace, and what is built for.
pub struct Facts {
    pub processor: &'static Processor,
    pub version: String,
    pub target_folder: PathBuf,
    /// Folder of the crate that carries llama.cpp.
    pub llama_folder: PathBuf,
}

/// What was built.
pub struct Built {
    pub binary: PathBuf,
    /// The library for a stock llama.cpp.
    pub dropin: PathBuf,
    /// Where llama.cpp's build put its results.
    pub llama_out: PathBuf,
    /// Libraries of the old system it is linked with.
    pub sysroot: PathBuf,
    /// All features, with commas between.
    pub features: String,
}

impl Facts {
    /// Reads them.
    pub fn read(processor: &'static Processor) -> Result<Self> {
        let metadata = output(Command::new("cargo").args(["metadata", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&metadata)?;
        let target = metadata["target_directory"].as_str().context("no target folder")?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let text = |name: &str, field: &str| {
            let package = packages.iter().find(|package| package["name"] == name);
            let found = package.and_then(|package| package[field].as_str());
            found.map(str::to_owned).with_context(|| format!("no {name}"))
        };
        let llama = PathBuf::from(text("llama-cpp-sys-2", "manifest_path")?);
        Ok(Self {
            processor,
            version: text("motley-cli", "version")?,
            target_folder: target.into(),
            llama_folder: llama.parent().context("a manifest without a folder")?.to_owned(),
        })
    }

    /// Folder for cargo's subcommands.
    pub(super) fn tools(&self) -> PathBuf {
        self.target_folder.join("release-tools")
    }

    /// A new, empty folder for one step.
    pub(super) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target_folder.join("dist-work").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// Builds with `features` beside `BACKENDS`.
pub fn build(facts: &Facts, features: &str) -> Result<Built> {
    tools::install_programs(facts.processor)?;
    AUDITABLE.install(&facts.tools())?;
    let sysroot = sysroot::make(&facts.target_folder, facts.processor)?;
    let features = [BACKENDS, features].join(",");
    let features = features.trim_end_matches(',');
    let mut command = AUDITABLE.command(&facts.tools());
    command.args(["build", "--release", "--locked", "--package", "motley-cli"]);
    let target = facts.processor.triple;
    command.args(["--target", target, "--features", features]);
    command.arg("--message-format=json-render-diagnostics");
    set_compilers(&mut command, facts, &sysroot);
    let release = facts.target_folder.join(target).join("release");
    for folder in [release.clone(), release.join("deps"), release.join("examples")] {
        remove_dead_links(&folder)?;
    }
    if features.contains("vulkan") {
        command.env("VULKAN_SDK", vulkan::make(&facts.target_folder, facts.processor, &sysroot)?);
    }
    let messages = command.stderr(Stdio::inherit()).output()?;
    ensure!(messages.status.success(), "the build failed");
    let messages = String::from_utf8(messages.stdout)?;
    let llama_out = llama_out(&messages).context("cargo did not say where llama.cpp was built")?;
    let binary = release.join(BINARY);
    let listed = fs::read(&binary)?.windows(SECTION.len()).any(|bytes| bytes == SECTION);
    ensure!(listed, "the binary does not carry the list of its crates");
    let dropin = dropin::build_into(&release, |command| {
        command.args(["--target", target]);
        set_compilers(command, facts, &sysroot);
    })?;
    Ok(Built { binary, dropin, llama_out, features: features.to_owned(), sysroot })
}

/// Compilers, flags and where libraries look for each other, through the environment, which
/// `llama-cpp-sys-2` passes on to CMake.
fn set_compilers(command: &mut Command, facts: &Facts, sysroot: &Path) {
    let sysroot = format!("--sysroot={}", sysroot.display());
    let home = env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from).join(".cargo");
    let home = env::var_os("CARGO_HOME").map_or(home, PathBuf::from);
    let c_flags = [
        sysroot.clone(),
        format!("-ffile-prefix-map={}=/target", facts.target_folder.display()),
        format!("-ffile-prefix-map={}=/cargo", home.display()),
        format!("-ffile-prefix-map={}=/motley", workspace_root().display()),
    ]
    .join(" ");
    let target = facts.processor.triple;
    let linker = match facts.processor.is_own() {
        true => String::new(),
        false => format!("-C link-arg=--target={target} -C link-arg={LINKER}"),
    };
    let rust_flags = [
        format!("-C linker={CC} {linker} -C link-arg={sysroot} -C link-arg=-Wl,-rpath,{LIBRARIES}"),
        format!("--remap-path-prefix={}=/cargo", home.display()),
        format!("--remap-path-prefix={}=/motley", workspace_root().display()),
    ]
    .join(" ");
    let name = target.replace('-', "_");
    command
        .env("CC", CC)
        .env("CXX", CXX)
        .env("CPATH", "")
        .env(format!("CFLAGS_{name}"), &c_flags)
        .env(format!("CXXFLAGS_{name}"), &c_flags)
        .env(format!("BINDGEN_EXTRA_CLANG_ARGS_{name}"), &sysroot)
        .env("CMAKE_INSTALL_RPATH", "$ORIGIN")
        .env("CMAKE_BUILD_WITH_INSTALL_RPATH", "ON")
        .env("RUSTFLAGS", rust_flags);
    if !facts.processor.is_own() {
        command.env("LDFLAGS", LINKER);
    }
}

/// Links into the output of a build before. `llama-cpp-sys-2` makes them anew, takes one that leads
/// nowhere for missing, and fails because it is there.
fn remove_dead_links(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() && !path.exists() {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// The output folder of llama.cpp's build script, from cargo's messages, one per line.
fn llama_out(messages: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|line| {
        let ran = line["reason"] == "build-script-executed";
        let of_llama = line["package_id"].as_str()?.contains("llama-cpp-sys-2");
        line["out_dir"].as_str().filter(|_| ran && of_llama).map(PathBuf::from)
    })
}

#[cfg(test)]
mod tests {
    use super::super::processor::PROCESSORS;
    use super::*;

    #[test]
    fn the_folder_of_llama_cpp_is_found_among_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","package_id":"x#llama-cpp-sys-2@1","out_dir":"no"}"#,
            "\n",
            r#"{"reason":"build-script-executed","package_id":"x#ring@1","out_dir":"no"}"#,
            "\nwarning: not JSON\n",
            r#"{"reason":"build-script-executed","package_id":"x#llama-cpp-sys-2@1","out_dir":"y"}"#,
        );
        assert_eq!(llama_out(messages), Some("y".into()));
        assert_eq!(llama_out(""), None);
    }

    #[test]
    fn links_that_lead_nowhere_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("libllama.so.0"), "").unwrap();
        std::os::unix::fs::symlink("libllama.so.0", path("libllama.so")).unwrap();
        std::os::unix::fs::symlink("libggml.so.0", path("libggml.so")).unwrap();
        remove_dead_links(folder.path()).unwrap();
        assert!(path("libllama.so").exists() && !path("libggml.so").is_symlink());
        remove_dead_links(&path("missing")).unwrap();
    }

    #[test]
    fn packages_are_named_by_a_version() {
        let facts = Facts::read(&PROCESSORS[0]).unwrap();
        assert!(facts.version.starts_with(|c: char| c.is_ascii_digit()), "{}", facts.version);
        assert!(facts.llama_folder.join("llama.cpp/LICENSE").is_file());
    }
}
