//! Names, keys and templates of a stranger's file steer no terminal: characters that could are
//! written out on every page and in every error (issue 16, defect 13).

mod support;

use motley_model::gguf::Metadata;
use std::process::Output;
use support::changed::{changed, renamed};
use support::{motley, motley_in, trained};

/// Sets the title, the clipboard and a colour; goes back in the line; writes from right to left.
const HOSTILE: &str = "\u{1b}]0;PWNED\u{7}\u{1b}]52;c;eHg=\u{7}\u{1b}[31mEVIL\u{9b}2J\r\u{202e}";

fn assert_harmless(output: &Output, what: &str) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(bytes).expect("text");
        let steers = |c: char| {
            c.is_control() && !"\n\t".contains(c) || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        assert!(!text.contains(steers), "{what}: {text:?}");
    }
}

fn named(mut metadata: Metadata) -> Metadata {
    metadata.insert("general.name", HOSTILE);
    metadata.insert("tokenizer.chat_template", &*format!("{{% {HOSTILE} %}}"));
    metadata
}

#[test]
fn a_hostile_name_is_written_out_by_every_command() {
    let Some(model) = trained("q4_k_m") else { return };
    let file = changed(&model, named, |_, _| {});
    let path = file.path().to_str().unwrap();
    let state = tempfile::tempdir().unwrap();
    let at = |name: &str| state.path().join(name).to_str().unwrap().to_owned();
    let (trace, plan) = (at("trace.jsonl"), at("plan.json"));
    let commands: [&[&str]; 10] = [
        &["inspect", path],
        &["inspect", path, "--json"],
        &["plan", path],
        &["plan", path, "--json"],
        &support::continued(
            path,
            "hi",
            &["-n", "2", "-v", "--loading", "on-demand", "--threads", "1"],
        ),
        &["explain", "last"],
        &["trace", "record", path, "-p", "hi", "-n", "2", "-o", &trace, "--threads", "1"],
        &["trace", "summary", &trace],
        &["sim", "--trace", &trace],
        &["doctor"],
    ];
    for args in commands {
        let output = motley_in(state.path(), args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_harmless(&output, &format!("{args:?}"));
        if args.contains(&"--json") {
            let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(said.to_string().contains("EVIL"), "{said}");
        }
    }
    // The truth is kept for programs: a plan read again names the model as its file does.
    std::fs::write(&plan, motley(&["plan", path, "--json"]).stdout).unwrap();
    let text: serde_json::Value = serde_json::from_slice(&std::fs::read(&plan).unwrap()).unwrap();
    assert_eq!(text["model"]["name"], HOSTILE);
    // By the model's template, which does not parse.
    let output = motley(&["run", path, "-p", "hi", "--no-record", "-vv"]);
    assert!(!output.status.success());
    assert_harmless(&output, "template");
}

#[test]
fn errors_that_quote_a_file_are_written_out() {
    let Some(model) = trained("q4_k_m") else { return };
    let foreign = |metadata: Metadata| {
        let mut metadata = renamed(&metadata, "qwen3moe.", &format!("{HOSTILE}."));
        metadata.insert("general.architecture", HOSTILE);
        metadata
    };
    let file = changed(&model, foreign, |_, _| {});
    let path = file.path().to_str().unwrap();
    for args in [&support::continued(path, "x", &[])[..], &support::continued(path, "x", &["-vv"])]
    {
        let output = motley(args);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains(r"\u{1b}"), "{args:?}");
        assert_harmless(&output, &format!("{args:?}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join(format!("{HOSTILE}.toml"));
    std::fs::write(&machine, format!("name = \"x\"\n{HOSTILE} = 3\n")).unwrap();
    let output = motley(&["sim", "--machine", machine.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_harmless(&output, "machine");
}
