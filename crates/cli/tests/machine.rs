//! The doors to this machine: `doctor` speaks to people and programs.

mod support;

use serde_json::Value;
use support::motley;

#[test]
fn doctor_fits_eighty_columns_and_speaks_json() {
    let output = motley(&["doctor"]);
    assert!(output.status.success());
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains('\u{1b}'), "colours in a pipe: {page}");
    for topic in ["Processor", "Memory", "Disk", "Direct reads", "GPU", "Energy meter"] {
        assert!(page.contains(topic), "no {topic} in {page}");
    }
    let output = motley(&["doctor", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json["cores"].as_u64().is_some_and(|cores| cores > 0), "{json}");
    assert!(json["lines"].as_array().is_some_and(|lines| lines.len() > 8), "{json}");
}

#[test]
fn doctor_names_a_path_that_is_not_there() {
    let output = motley(&["doctor", "no-such-model.gguf"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("no-such-model.gguf: no such file or folder"), "{error}");
}
