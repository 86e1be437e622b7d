//! What tests run on, or `None` and a word why not: models written once, data beside the project,
//! Python and Node with packages. With `MOTLEY_REQUIRE_MODELS` or `MOTLEY_REQUIRE_CLIENTS` set, as in CI,
//! what cannot be had fails the test.

use crate::synth::{Arch, Preset, Request, ensure_cached};
use crate::{node, smollm2, upcycle, venv};
use std::path::{Path, PathBuf};

/// The small model of `arch`, written if missing. `None` when the tokenizer it needs is absent.
pub fn synthetic(arch: Arch) -> Option<PathBuf> {
    synthetic_of(&Request::of_preset(Preset::Test(arch)))
}

/// As [`synthetic`], for any request.
pub fn synthetic_of(request: &Request) -> Option<PathBuf> {
    dense()?;
    Some(ensure_cached(request).expect("the model can be written"))
}

/// SmolLM2 with permuted copies of its own feed-forward networks as experts, some for each token.
pub fn upcycled(experts: u64, topk: u64) -> Option<PathBuf> {
    let request = upcycle::Request { experts, topk, block: 32, seed: 0 };
    Some(upcycle::ensure_cached(&dense()?, &request).expect("the model can be written"))
}

/// SmolLM2 as fetched by `cargo xtask smollm2`.
pub fn dense() -> Option<PathBuf> {
    let path = smollm2::path().ok()?;
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("MOTLEY_REQUIRE_MODELS").is_some();
    assert!(!required, "{} is not there: run `cargo xtask smollm2`", path.display());
    eprintln!("passing over: {} is not there: run `cargo xtask smollm2`", path.display());
    None
}

/// The trained small model in one of its quantisations.
pub fn trained(kind: &str) -> Option<PathBuf> {
    shared(&format!("tiny-wiki-moe/tiny-wiki-moe-{kind}.gguf"))
}

/// A file of the data folder beside the project.
pub fn shared(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("MOTLEY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let file = folder.join("data").join(name);
    if !file.exists() {
        eprintln!("passing over: {} is not there", file.display());
    }
    file.exists().then_some(file)
}

/// Python of the environment `name` with `packages`; installed if missing. `None` without
/// Python or network.
pub fn python(name: &str, packages: &[&str], imports: &str) -> Option<PathBuf> {
    or_pass_over(venv::python(name, packages, imports))
}

/// What a client needs, or a word why it is not there.
fn or_pass_over(found: anyhow::Result<PathBuf>) -> Option<PathBuf> {
    let required = std::env::var_os("MOTLEY_REQUIRE_CLIENTS").is_some();
    let pass_over = |error: &anyhow::Error| {
        assert!(!required, "{error:#}");
        eprintln!("passing over: {error:#}");
    };
    found.inspect_err(pass_over).ok()
}

/// The folder `name` with `packages` of npm; installed if missing. `None` without Node or network.
pub fn node(name: &str, packages: &[&str]) -> Option<PathBuf> {
    or_pass_over(node::packages(name, packages))
}

/// The drop-in library, as `cargo xtask dropin` leaves it beside the programs of this build.
/// `None` where nobody built it.
pub fn dropin_library() -> Option<PathBuf> {
    let programs = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let library = programs.join("libggml_motley.so");
    if !library.exists() {
        let required = std::env::var_os("MOTLEY_REQUIRE_CLIENTS").is_some();
        assert!(!required, "{} is not there: cargo xtask dropin", library.display());
        eprintln!("passing over: {} is not there", library.display());
    }
    library.exists().then_some(library)
}

/// Whether ONNX Runtime is named.
pub fn has_onnx_runtime() -> bool {
    let ready = std::env::var_os("ORT_DYLIB_PATH").is_some();
    if !ready {
        eprintln!("passing over: ORT_DYLIB_PATH names no ONNX Runtime");
    }
    ready
}
