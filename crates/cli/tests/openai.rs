//! The official `openai` Python package against a real server: openai_client.py holds
//! the checks. The package is installed once, into the user's cache folder.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

mod support;

use motley_testkit::synth::Arch;
use std::path::Path;
use std::process::Command;
use support::server::{Server, count};

/// Generations with a JSON schema, all of which must be valid.
const GENERATIONS: usize = 100;

#[test]
fn the_official_package_is_served() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let packages = ["openai==3.49.0", "jsonschema==4.26.0"];
    let python = support::python("openai-venv", &packages, "openai, jsonschema");
    let Some(python) = python else { return };
    let server = Server::start(&model, &["--context", "8192", "--api-key", "sesame"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai_client.py");
    let generations = count("MOTLEY_GENERATIONS", GENERATIONS).to_string();
    let output = Command::new(python)
        .arg(script)
        .args([server.url().as_str(), "sesame", "m", &generations])
        .output()
        .expect("python starts");
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.trim_end().ends_with("passed"), "{said}");
}
