//! `motley env` with a prebuilt llama.cpp from npm, and `motley explain` on what the library left of
//! a run inside it.

use motley_testkit::fixtures;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGES: [&str; 2] = ["node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1"];

fn host() -> Option<(PathBuf, PathBuf)> {
    let library = fixtures::dropin_library()?.canonicalize().unwrap();
    Some((fixtures::node("node-llama-cpp-3.22.1", &PACKAGES)?, library))
}

fn motley(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
    command.args(arguments).env_remove("GGML_BACKEND_PATH");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_host_is_tried_before_the_line_is_printed() {
    let Some((packages, library)) = host() else { return };
    let (packages, library) = (packages.to_str().unwrap(), library.to_str().unwrap());
    let said = motley(&["env", packages], &[]);
    assert_eq!(text(&said.stdout), format!("GGML_BACKEND_PATH={library}\n"));
    let known = "a ggml with interface 2, tables 6/11/16/15";
    assert!(text(&said.stderr).contains(known), "{}", text(&said.stderr));

    let taken = [("GGML_BACKEND_PATH", "/opt/their backend.so")];
    let said = motley(&["env", packages, "--library", library], &taken);
    let both = format!("MOTLEY_BACKEND_PATH='/opt/their backend.so' GGML_BACKEND_PATH={library}\n");
    assert_eq!(text(&said.stdout), both);

    let said = motley(&["env", packages, "--json"], &[]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(json["variables"]["GGML_BACKEND_PATH"], library);
    assert!(json["ggml"].as_str().unwrap().ends_with("libggml.v0.5.0.so"), "{json}");
}

#[test]
fn what_will_not_work_is_said_with_the_reason() {
    let Some((packages, _)) = host() else { return };
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let packages = packages.to_str().unwrap();
    for (arguments, part) in [
        (vec!["env", "sh"], "loads no libggml.so. A llama.cpp with its ggml inside"),
        (vec!["env", "no-such-program"], "no-such-program: no such program"),
        (vec!["env", empty], "no libggml.so below"),
        (vec!["env", packages, "--library", "/no/such.so"], "/no/such.so"),
        (vec!["env", packages, "--library", "/etc/hostname"], "did not load the library"),
    ] {
        let said = motley(&arguments, &[]);
        assert!(!said.status.success() && said.stdout.is_empty(), "{arguments:?}");
        assert!(text(&said.stderr).contains(part), "{arguments:?}: {}", text(&said.stderr));
    }
}

#[test]
fn figures_of_a_host_are_explained() {
    let (Some((packages, library)), Some(model)) = (host(), fixtures::upcycled(8, 2)) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("run.json");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dropin/tests/hosts/generate.mjs");
    let ran = Command::new("node")
        .arg(script)
        .args([&packages, &model])
        .env("GGML_BACKEND_PATH", &library)
        .env("MOTLEY_MEMORY", "400M")
        .env("MOTLEY_STATS", &stats)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let said = motley(&["explain", stats.to_str().unwrap()], &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stdout).contains("disk"), "{}", text(&said.stdout));
}
