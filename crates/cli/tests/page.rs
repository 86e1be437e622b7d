//! The page at `/` in a real browser: page.mjs and page_markdown.mjs hold the steps. Needs Node and
//! Chromium; `playwright-core` is installed once, into the user's cache folder.

mod support;

use motley_testkit::synth::Arch;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::server::Server;

#[test]
fn the_page_chats_and_shows_its_experts() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let Some((module, browser)) = browser() else { return };
    let memory = memory_for_half(&model).to_string();
    let server = Server::start(&model, &["--context", "4096", "--memory", &memory]);
    let locked = Server::start(&model, &["--api-key", "sesame"]);
    let shots = std::env::var_os("MOTLEY_SHOTS").map(PathBuf::from);
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page.mjs"))
        .args([&module, &browser])
        .args([server.url(), locked.url()])
        .arg(shots.as_deref().unwrap_or(folder.path()))
        .output()
        .expect("node starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("page ok"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// A budget in which about half of all experts stay.
fn memory_for_half(model: &Path) -> u64 {
    let (spec, _) = motley_model::ModelSpec::open(model).expect("a model");
    let shape = motley_plan::budget::SessionShape {
        context_tokens: 4096,
        kv: motley_model::KvType::F16,
        windows: false,
        chunk_tokens: 512,
        output_tokens: 16,
        states: 32,
    };
    let budget = motley_plan::budget::Budget::of(&spec, shape);
    budget.smallest_bytes() + u64::from(budget.experts / 2) * budget.slot_bytes
}

/// The module that drives a browser, and the browser.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let browser = known.map(PathBuf::from).into_iter().find(|path| path.exists());
    let folder = motley_testkit::cache::models_folder().ok()?.with_file_name("playwright");
    let module = folder.join("node_modules/playwright-core/index.mjs");
    if browser.is_some() && !module.exists() {
        let install = ["install", "--silent", "--prefix"];
        let _ = Command::new("npm").args(install).arg(&folder).arg("playwright-core").status();
    }
    let Some(browser) = browser.filter(|_| module.exists()) else {
        eprintln!("passing over: no Chromium, or no playwright-core to drive it");
        return None;
    };
    Some((module, browser))
}
