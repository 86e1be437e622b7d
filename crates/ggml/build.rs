//! Compiles the shim: the few functions through which llama.cpp is called where its C++ may
//! throw. Builds nothing of llama.cpp itself; `llama-cpp-sys-2` does.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=shim/shim.cpp");
    println!("cargo::rerun-if-env-changed=DEP_LLAMA_ROOT");
    // Where llama-cpp-sys-2 installed its library and headers. Absent when its build is passed
    // over (a check of features whose compilers are not here): then nothing is linked either.
    let Some(root) = std::env::var_os("DEP_LLAMA_ROOT").map(PathBuf::from) else {
        return;
    };
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("shim/shim.cpp")
        .include(root.join("include"))
        .warnings(true)
        .compile("motley_shim");
}
