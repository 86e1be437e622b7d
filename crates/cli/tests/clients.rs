//! Official Python packages against a real server; the scripts beside this file hold the checks.
//! Packages are installed once, into the user's cache folder.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

mod support;

use motley_model::Pooling;
use motley_testkit::fixtures::synthetic_of;
use motley_testkit::synth::{Arch, Preset, Request};
use std::path::Path;
use std::process::Command;
use support::server::{Server, count};

/// Generations with a JSON schema, all of which must be valid.
const GENERATIONS: usize = 100;
/// An answer is the same whichever part of its prompt was computed before.
const EXACT: [&str; 1] = ["--exact"];
/// The key all clients are given.
const KEY: &str = "sesame";
const OPENAI: &[&str] = &["openai==3.49.0", "jsonschema==4.26.0"];
const OLLAMA: &[&str] = &["ollama==0.6.3"];

#[test]
fn the_package_of_openai_is_served() {
    let generations = count("MOTLEY_GENERATIONS", GENERATIONS).to_string();
    drive(&Client {
        name: "openai",
        packages: OPENAI,
        // Alone in its context, a stream and a whole answer are the same to the last bit.
        serve: &["--exact"],
        arguments: &[&generations],
        ..Client::default()
    });
}

#[test]
fn the_packages_get_vectors() {
    let embedder =
        Client { script: Some("embeddings"), pooling: Some(Pooling::Last), ..Client::default() };
    drive(&Client { name: "openai", packages: OPENAI, ..embedder });
    let script = Some("ollama_embed");
    drive(&Client { name: "ollama", packages: OLLAMA, script, ..embedder });
}

#[test]
fn the_package_of_anthropic_is_served() {
    let (name, packages) = ("anthropic", &["anthropic==2.8.0"]);
    drive(&Client { name, packages, serve: &EXACT, ..Client::default() });
}

#[test]
fn the_package_of_ollama_is_served() {
    let (name, packages) = ("ollama", OLLAMA);
    drive(&Client { name, packages, serve: &EXACT, ..Client::default() });
}

/// An agent that edits a file: model, tool and model again, whole and streamed, by two routes.
#[test]
fn an_agent_edits_a_file() {
    let (name, packages) = ("agents", &["openai-agents==0.24.0"]);
    drive(&Client { name, packages, ..Client::default() });
}

/// A package and the script `{name}_client.py` that uses it.
#[derive(Clone, Copy, Default)]
struct Client<'a> {
    name: &'a str,
    packages: &'a [&'a str],
    /// Another script than that.
    script: Option<&'a str>,
    /// A model that makes vectors.
    pooling: Option<Pooling>,
    /// Further flags of `motley serve`.
    serve: &'a [&'a str],
    /// What the script is told beside the server's URL, the key and the model's name.
    arguments: &'a [&'a str],
}

fn drive(client: &Client<'_>) {
    let Client { name, packages, script, pooling, serve, arguments } = client;
    let preset = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    let Some(model) = synthetic_of(&Request { pooling: *pooling, ..preset }) else { return };
    let python = support::python(&format!("{name}-venv"), packages, name);
    let Some(python) = python else { return };
    let flags = ["--context", "8192", "--api-key", KEY];
    let server = Server::start(&model, &[&flags[..], serve].concat());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = Command::new(python)
        .arg(scripts.join(format!("{}_client.py", script.unwrap_or(name))))
        .args([server.url().as_str(), KEY, "m"])
        .args(*arguments)
        .output()
        .expect("python starts");
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.trim_end().ends_with("passed"), "{said}");
}
