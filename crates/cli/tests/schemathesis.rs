//! The OpenAPI document as a contract: schemathesis (PyPI) makes requests of it, right and
//! wrong, and holds every answer against it. Seeded; `MOTLEY_EXAMPLES` makes more.

mod support;

use motley_model::Pooling;
use motley_testkit::fixtures::synthetic_of;
use motley_testkit::synth::{Arch, Preset, Request};
use std::path::PathBuf;
use std::process::Command;
use support::server::{Server, count};

/// Requests made of each operation by chance, besides the systematic ones.
const EXAMPLES: usize = 20;

/// What every answer is held against.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method";

#[test]
fn answers_are_as_the_document_says() {
    check(support::synth(Arch::Qwen3moe), &[]);
}

#[test]
fn vectors_are_as_the_document_says() {
    let preset = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    let model = synthetic_of(&Request { pooling: Some(Pooling::Last), ..preset });
    check(model, &["--include-path-regex", "^/(v1/embeddings|api/embed)$"]);
}

#[test]
fn scores_are_as_the_document_says() {
    let preset = Request::of_preset(Preset::Test(Arch::Qwen3));
    let model = synthetic_of(&Request { pooling: Some(Pooling::Rank), ..preset });
    check(model, &["--include-path-regex", "^/v1/rerank$"]);
}

/// Requests of all operations, or of those that `which` says.
fn check(model: Option<PathBuf>, which: &[&str]) {
    let Some(model) = model else { return };
    let python = support::python("schemathesis-venv", &["schemathesis==4.32.5"], "schemathesis");
    let Some(python) = python else { return };
    let server = Server::start(&model, &["--context", "256"]);
    let output = Command::new(python)
        .args(["-m", "schemathesis.cli", "run"])
        .arg(format!("{}/openapi.json", server.url()))
        .args(["--checks", CHECKS, "--phases", "coverage,fuzzing", "--seed", "1", "--no-color"])
        .args(["--max-examples", &count("MOTLEY_EXAMPLES", EXAMPLES).to_string()])
        .args(["--request-timeout", "30"])
        .args(which)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let cases = said.lines().find(|line| line.contains("generated")).unwrap_or_default();
    println!("{}", cases.trim());
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(cases.contains("generated"), "{said}");
    assert_eq!(server.get("/health").0, 200);
}
