//! Compilers for Windows: this machine's clang, with headers and libraries of mingw-w64 and GNU's
//! libstdc++ as Debian packages them. All of these become part of the program.

use crate::dist::build::Facts;
use crate::dist::tools::{CC, CXX, install_missing, output, run};
use crate::workspace_root;
use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built for, as Rust names it.
pub const TRIPLE: &str = "x86_64-pc-windows-gnu";
/// Links, and knows where its libraries are. The one of GNU's compilers whose libstdc++ has threads.
pub(super) const LINKER: &str = "x86_64-w64-mingw32-gcc-posix";
/// Where it looks for `ld.lld`, which takes clang's sections beside GNU's without a warning for each.
const LLD_FOLDER: &str = "/usr/lib/llvm-16/bin";
/// Takes symbols out.
pub(super) const STRIP: &str = "x86_64-w64-mingw32-strip";
/// Where the linker finds libraries of Windows, by the name of one of them.
const THREADS: &str = "libwinpthread.a";
/// Programs of the system, each with Debian's package of it.
const PROGRAMS: [(&str, &str); 6] = [
    (CC, "clang-16"),
    ("cmake", "cmake"),
    ("ld.lld-16", "lld-16"),
    (LINKER, "g++-mingw-w64-x86-64-posix"),
    ("llvm-ar-16", "llvm-16"),
    ("makensis", "nsis"),
];
/// The level of x86-64 that its kernels are for: the third, of 2013 and later.
const LEVEL: [&str; 6] =
    ["GGML_SSE42", "GGML_AVX", "GGML_AVX2", "GGML_FMA", "GGML_F16C", "GGML_BMI2"];
/// Folders of libstdc++'s headers, below the compiler's own.
const HEADERS: [&str; 3] =
    ["include/c++", "include/c++/x86_64-w64-mingw32", "include/c++/backward"];
/// What those headers lack.
const MISSING: &str = "build/windows/missing.h";
/// libstdc++ has its variables of threads where GNU's compilers look for them on Windows.
const THREAD_VARIABLES: &str = "-femulated-tls";

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    install_missing(&PROGRAMS, None)?;
    run(Command::new("rustup").args(["target", "add", TRIPLE]))
}

/// All of it through the environment, which `llama-cpp-sys-2` passes on to CMake.
pub(crate) fn set(command: &mut Command, facts: &Facts) -> Result<()> {
    let gnu = found("libstdc++.a")?;
    let gnu = gnu.parent().context("a library in no folder")?;
    let libraries = static_libraries(facts, gnu)?;
    let home = env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from).join(".cargo");
    let home = env::var_os("CARGO_HOME").map_or(home, PathBuf::from);
    let c_flags = [
        THREAD_VARIABLES.to_owned(),
        format!("-include {}", workspace_root().join(MISSING).display()),
        format!("-ffile-prefix-map={}=/target", facts.target_folder.display()),
        format!("-ffile-prefix-map={}=/cargo", home.display()),
        format!("-ffile-prefix-map={}=/motley", workspace_root().display()),
    ];
    let headers = HEADERS.map(|folder| format!("-isystem {}", gnu.join(folder).display()));
    let rust_flags = [
        format!("-L native={} -C link-arg=-static -C link-arg=-fuse-ld=lld", libraries.display()),
        format!("-C link-arg=-B{LLD_FOLDER}"),
        format!("--remap-path-prefix={}=/cargo", home.display()),
        format!("--remap-path-prefix={}=/motley", workspace_root().display()),
    ];
    let name = TRIPLE.replace('-', "_");
    command
        .env(format!("CC_{name}"), CC)
        .env(format!("CXX_{name}"), CXX)
        .env(format!("AR_{name}"), "llvm-ar-16")
        .env("CPATH", "")
        .env(format!("CFLAGS_{name}"), c_flags.join(" "))
        .env(format!("CXXFLAGS_{name}"), [c_flags.join(" "), headers.join(" ")].join(" "))
        // Of CMake's trials alone: it links nothing else.
        .env("LDFLAGS", format!("--ld-path=ld.lld-16 -static -L{} -lpthread", libraries.display()))
        .env("CMAKE_RC_COMPILER", "x86_64-w64-mingw32-windres")
        .env("CMAKE_PROJECT_INCLUDE", workspace_root().join("build/windows/names.cmake"))
        .env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), LINKER)
        .env("RUSTFLAGS", rust_flags.join(" "));
    command.envs(LEVEL.map(|name| (name, "ON")));
    Ok(())
}

/// A folder with those libraries alone that are linked in: where their shared ones lie too, the
/// linker would take these, and Windows has none of them.
fn static_libraries(facts: &Facts, gnu: &Path) -> Result<PathBuf> {
    let folder = facts.target_folder.join("dist-mingw");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let threads = found(THREADS)?;
    for (name, library) in [
        ("libstdc++.a", gnu.join("libstdc++.a")),
        ("libgcc.a", gnu.join("libgcc.a")),
        ("libgcc_eh.a", gnu.join("libgcc_eh.a")),
        ("libpthread.a", threads.clone()),
        (THREADS, threads),
    ] {
        let link = folder.join(name);
        if !link.exists() {
            symlink(&library, &link).with_context(|| link.display().to_string())?;
        }
    }
    Ok(folder)
}

/// Where the linker has a library.
fn found(library: &str) -> Result<PathBuf> {
    let path = output(Command::new(LINKER).arg(format!("-print-file-name={library}")))?;
    Path::new(path.trim()).canonicalize().with_context(|| library.to_owned())
}
