//! What goes wrong is said at the default level, on stderr, beside an answer that stays whole on
//! stdout (issue 16, defect 12).

mod support;

use motley_model::gguf::TensorInfo;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use support::changed::changed;
use support::server::Server;
use support::{motley, motley_in, trained};
use tempfile::NamedTempFile;

/// `motley` with what is kept in `config`.
fn motley_with(config: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_motley"))
        .env("MOTLEY_CONFIG", config)
        .env("CI", "true")
        .args(args)
        .output()
        .expect("motley starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A model whose routers are no numbers.
fn nan_routers(model: &Path) -> NamedTempFile {
    changed(
        model,
        |metadata| metadata,
        |tensor, bytes| {
            if tensor.name.ends_with("ffn_gate_inp.weight") {
                bytes
                    .chunks_exact_mut(4)
                    .for_each(|one| one.copy_from_slice(&f32::NAN.to_le_bytes()));
            }
        },
    )
}

/// A model with one entry of its vocabulary whose logit is no number.
fn nan_entry(model: &Path, entry: usize) -> NamedTempFile {
    let has_output = |tensor: &TensorInfo| tensor.name == "output.weight";
    let header = motley_testkit::gguf_source::read_header(model).expect("a model");
    let name = match header.tensors.iter().any(has_output) {
        true => "output.weight",
        false => "token_embd.weight",
    };
    changed(
        model,
        |metadata| metadata,
        |tensor, bytes| {
            if tensor.name == name {
                let row = bytes.len() / tensor.dims[1] as usize;
                bytes[entry * row..(entry + 1) * row].fill(0xff);
            }
        },
    )
}

#[test]
fn a_model_that_computes_no_numbers_is_an_error_everywhere() {
    let Some(model) = trained("q4_k_m") else { return };
    let all = nan_routers(&model);
    // The entry is none of the prompt's, and greedy choice would pass over it.
    let one = nan_entry(&model, 4000);
    let text = NamedTempFile::new().unwrap();
    std::fs::write(text.path(), "The river rises in the hills. ".repeat(40)).unwrap();
    let text = text.path().to_str().unwrap();
    for file in [&all, &one] {
        let path = file.path().to_str().unwrap();
        let run = ["run", path, "-p", "Hello world", "--raw", "-n", "4", "--no-record"];
        let run = [&run[..], &["--threads", "1"]].concat();
        let commands = [
            [&run[..], &["--temperature", "0"]].concat(),
            [&run[..], &["--loading", "on-demand"]].concat(),
            [&run[..], &["--temperature", "1"]].concat(),
            [&run[..], &["--json"]].concat(),
            vec!["eval", path, "--text", text, "--window", "32", "--items", "1", "--threads", "1"],
            vec![
                "bench",
                path,
                "--pairs",
                "1",
                "--prefill",
                "16",
                "--decode",
                "2",
                "--threads",
                "1",
            ],
        ];
        for args in commands {
            let output = motley(&args);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
            let said = stderr(&output);
            assert!(said.contains("NaN") && said.contains("token "), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_server_answers_no_numbers_with_an_error() {
    let Some(model) = trained("q4_k_m") else { return };
    let file = nan_entry(&model, 4000);
    let server = Server::start(file.path(), &[]);
    for temperature in [0.0, 1.0] {
        let body = json!({ "prompt": "Hello", "max_tokens": 4, "temperature": temperature });
        let (status, answer) = server.post("/v1/completions", &body);
        assert_eq!(status, 500, "{answer}");
        assert!(answer.to_string().contains("error"), "{answer}");
    }
    let body = json!({ "prompt": "Hello", "max_tokens": 4, "stream": true });
    let (_, answer) = server.post("/v1/completions", &body);
    assert!(answer.to_string().contains("error"), "{answer}");
}

#[test]
fn kept_files_that_cannot_be_used_are_named_with_a_way_out() {
    let Some(model) = trained("q4_k_m") else { return };
    let config = tempfile::tempdir().unwrap();
    let files = [
        ("calibrations/2030-01-01T00-00-00Z.toml", "half a calibra", "motley calibrate"),
        ("tunings/Tiny-2030-01-01T00-00-00Z.toml", "motley_tuning = 9", "motley tune"),
        ("profiles/Tiny-Wiki-MoE-2030.jsonl", "{\"motley_profile\":", "motley calibrate MODEL"),
    ];
    for (name, text, _) in files {
        let path = config.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // What another process is writing is no kept file yet.
    std::fs::write(config.path().join("calibrations/.2031.toml.x.part"), "half").unwrap();
    let output = motley_with(config.path(), &["plan", model.to_str().unwrap(), "--json"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
    for (name, _, command) in files {
        let line =
            said.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{said}"));
        assert!(line.starts_with("motley: warning: "), "{line}");
        assert!(line.contains(command), "{line}");
    }
    assert_eq!(said.lines().count(), files.len(), "{said}");
}

#[test]
fn a_run_that_cannot_be_kept_says_so_and_answers() {
    let Some(model) = trained("q4_k_m") else { return };
    if !Path::new("/dev/full").exists() {
        return;
    }
    for name in ["last-run.json", "last-trace.jsonl"] {
        let state = tempfile::tempdir().unwrap();
        symlink("/dev/full", state.path().join(name)).unwrap();
        let args = support::continued(model.to_str().unwrap(), "hi", &["-n", "2", "--json"]);
        let output = motley_in(
            state.path(),
            &[&args[..], &["--loading", "on-demand", "--threads", "1"]].concat(),
        );
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
        let warned = said.lines().any(|line| {
            line.starts_with("motley: warning: ") && line.contains(name) && line.contains("explain")
        });
        assert!(warned, "{said}");
        // What the trial of the file left is not of the run.
        let of_the_run = |entry: &std::fs::DirEntry| entry.file_name() != "checked";
        let left: Vec<_> =
            std::fs::read_dir(state.path()).unwrap().flatten().filter(of_the_run).collect();
        assert!(left.len() == 1, "neither half of it is kept: {left:?}");
    }
}
