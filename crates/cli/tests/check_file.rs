//! Files not seen before: a child tries them, an end of the child is a message here, and what
//! passed is remembered by its content.

mod support;

use motley_model::gguf::{GgufHeader, GgufLimits, Metadata, TensorDesc, encode_header};
use motley_testkit::synth::Arch;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Output;
use support::motley_in;

/// The small model of `arch` with other metadata, and zeros for weights.
fn changed(arch: Arch, folder: &Path, change: impl Fn(&mut Metadata)) -> Option<PathBuf> {
    let source = support::synth(arch)?;
    let reader = BufReader::new(File::open(source).expect("a file"));
    let mut header = GgufHeader::read(reader, &GgufLimits::default()).expect("a header");
    change(&mut header.metadata);
    let tensors = header.tensors.into_iter();
    let tensors: Vec<_> =
        tensors.map(|t| TensorDesc { name: t.name, dims: t.dims, ty: t.ty }).collect();
    let encoded = encode_header(&header.metadata, &tensors).expect("a header");
    let path = folder.join("changed.gguf");
    let mut file = File::create(&path).expect("a file");
    file.write_all(&encoded.bytes).expect("written");
    file.set_len(encoded.file_len).expect("a sparse file");
    Some(path)
}

/// A header our own checks let pass and one of llama.cpp's assertions does not.
fn ends_the_engine(folder: &Path) -> Option<PathBuf> {
    changed(Arch::GptOss, folder, |metadata| {
        metadata.insert("gpt-oss.attention.value_length", 1u32);
    })
}

fn run(state: &Path, model: &Path, more: &[&str]) -> Output {
    let model = model.to_str().expect("UTF-8");
    let args = support::continued(model, "one", &["-n", "2", "--no-record", "--threads", "1"]);
    motley_in(state, &[&args[..], more].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn verdicts(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(state.join("checked"));
    entries.map_or(vec![], |entries| entries.map(|entry| entry.expect("an entry").path()).collect())
}

#[test]
fn a_file_that_ends_the_engine_gets_a_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(model) = ends_the_engine(folder.path()) else { return };
    for path in ["mapped", "on-demand"] {
        let output = run(folder.path(), &model, &["--loading", path]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("changed.gguf makes the engine fail: "), "{said}");
        assert!(said.contains("GGML_ASSERT") && said.contains("--trust-file"), "{said}");
    }
    assert!(verdicts(folder.path()).is_empty(), "a bad verdict is not kept");
    // The same without the child: nobody is there to tell.
    let output = run(folder.path(), &model, &["--trust-file"]);
    assert_eq!(output.status.code(), None, "{}", said(&output));
}

#[test]
fn values_of_the_header_are_refused_in_our_own_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = changed(Arch::Qwen3moe, folder.path(), |metadata| {
        metadata.insert("tokenizer.ggml.model", "none");
    });
    let Some(model) = model else { return };
    for flags in [&[][..], &["--trust-file"]] {
        let output = run(folder.path(), &model, flags);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains("tokenizer.ggml.model is \"none\""), "{}", said(&output));
    }
}

#[test]
fn what_passed_is_tried_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let state = folder.path();
    let written = |path: &Path| path.metadata().and_then(|file| file.modified()).expect("a time");
    assert!(run(state, &model, &["--json"]).status.success());
    let kept = verdicts(state);
    assert_eq!(kept.len(), 1);
    let first = written(&kept[0]);
    let output = run(state, &model, &["--json", "--loading", "on-demand"]);
    serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON and nothing else");
    assert_eq!((verdicts(state), written(&kept[0])), (kept.clone(), first), "tried again");
    // A damaged verdict is none.
    std::fs::write(&kept[0], "{\"key\": \"of som").expect("written");
    assert!(run(state, &model, &[]).status.success());
    assert!(std::fs::read_to_string(&kept[0]).expect("text").contains("synth-qwen3moe"));
    // Another header is another file, under whatever name.
    let name = |metadata: &mut Metadata| drop(metadata.insert("general.name", "another"));
    let other = changed(Arch::Qwen3moe, state, name).expect("a model");
    let output = run(state, &other, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    // Its weights are zeros: the header passes the trial, what it computes does not pass the run.
    assert!(said.contains("the same number for every entry"), "{said}");
    assert_eq!(verdicts(state).len(), 2);
}

#[test]
fn every_command_that_loads_tries_or_trusts() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (text, trace, profile) = (place("text"), place("trace"), place("profile"));
    std::fs::write(&text, "one two three four five six seven eight ".repeat(20)).expect("a file");
    let commands: [&[&str]; 6] = [
        &support::continued(model, "one", &["-n", "1", "--no-record"]),
        &["bench", model, "--pairs", "1", "--prefill", "8", "--decode", "2", "--repeat", "1"],
        &["eval", model, "--text", &text, "--items", "1", "--window", "16"],
        &["trace", "record", model, "-p", "one", "-n", "1", "--no-record", "-o", &trace],
        &["tune", model, "--dry-run"],
        &["calibrate", model, "--text", &text, "--read", "48", "--decode", "1", "-o", &profile],
    ];
    for (index, command) in commands.iter().enumerate() {
        for (flags, tried) in [(&["--trust-file"][..], 0), (&[], 1)] {
            let state = folder.path().join(format!("state-{index}"));
            let _ = std::fs::remove_file(&profile);
            let output = motley_in(&state, &[command, flags].concat());
            assert!(output.status.success(), "{command:?}: {}", said(&output));
            assert_eq!(verdicts(&state).len(), tried, "{command:?} {flags:?}");
        }
    }
    for command in [&["plan", model][..], &["inspect", model], &["doctor"]] {
        let output = motley_in(folder.path(), &[command, &["--trust-file"]].concat());
        assert!(said(&output).contains("unexpected argument"), "{command:?}");
    }
    let output = motley_in(folder.path(), &["calibrate", "--seconds", "1", "--trust-file"]);
    assert!(said(&output).contains("--trust-file") && said(&output).contains("--text"));
}
