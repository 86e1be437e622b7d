//! Settings, variables, the service and reports of defects, as the binary does them.

mod support;

use serde_json::Value;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::trained;
use tempfile::{TempDir, tempdir};

const MOTLEY: &str = env!("CARGO_BIN_EXE_motley");

/// `motley` in a home of its own.
fn motley(home: &TempDir, args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(MOTLEY)
        .args(args)
        .env("HOME", home.path())
        .env("MOTLEY_CONFIG", home.path().join("config"))
        .env("MOTLEY_STATE", home.path().join("state"))
        .env("XDG_CONFIG_HOME", home.path().join("xdg"))
        .env("CI", "true")
        .envs(variables.iter().copied())
        .output()
        .expect("motley starts")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_flag_can_be_a_variable_or_stand_in_a_file() {
    let Some(model) = trained("q4_k_m") else { return };
    let model = model.to_str().unwrap();
    let home = tempdir().unwrap();
    let tokens = |args: &[&str], variables: &[(&str, &str)]| {
        let run = ["run", model, "--raw", "-p", "one two", "--temperature", "0", "--threads", "1"];
        let all = [&run[..], args].concat();
        let output = motley(&home, &all, variables);
        let (stdout, stderr) = said(&output);
        let json: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        json["tokens"].as_array().unwrap().len()
    };
    let json = ("MOTLEY_JSON", "1");
    assert_eq!(tokens(&[], &[json, ("MOTLEY_TOKENS", "3")]), 3);
    assert_eq!(tokens(&["-n", "2"], &[json, ("MOTLEY_TOKENS", "3")]), 2);
    std::fs::create_dir_all(home.path().join("config")).unwrap();
    let file = home.path().join("config/config.toml");
    std::fs::write(&file, "json = true\n[run]\ntokens = 4\n").unwrap();
    assert_eq!(tokens(&[], &[]), 4);
    assert_eq!(tokens(&[], &[("MOTLEY_TOKENS", "5")]), 5);
    // An error says what was not typed.
    std::fs::write(&file, "memory = \"1M\"\n").unwrap();
    let (_, stderr) = said(&motley(&home, &["run", model, "-p", "x"], &[("MOTLEY_THREADS", "1")]));
    assert!(stderr.contains("--memory (config.toml)"), "{stderr}");
    assert!(stderr.contains("--threads (MOTLEY_THREADS)"), "{stderr}");
    std::fs::write(&file, "memroy = \"1M\"\n").unwrap();
    let (_, stderr) = said(&motley(&home, &["doctor"], &[]));
    assert!(stderr.contains("config.toml") && stderr.contains("`memroy`"), "{stderr}");
}

#[test]
fn settings_are_shown_and_a_file_with_all_of_them_is_written() {
    let home = tempdir().unwrap();
    let (stdout, _) = said(&motley(&home, &["config"], &[("MOTLEY_API_KEY", "secret")]));
    assert!(stdout.contains("not there") && !stdout.contains("secret"), "{stdout}");
    assert!(motley(&home, &["config", "--init"], &[]).status.success());
    let text = std::fs::read_to_string(home.path().join("config/config.toml")).unwrap();
    assert!(text.contains("# [run]") && text.contains("# memory"), "{text}");
    let again = motley(&home, &["config", "--init"], &[]);
    assert!(!again.status.success() && said(&again).1.contains("overwrites nothing"));
}

#[test]
fn a_service_is_written_and_removed() {
    let home = tempdir().unwrap();
    let install = ["service", "install", "--dry-run", "/m/big model.gguf", "--port", "9000"];
    let (unit, stderr) = said(&motley(&home, &install, &[]));
    assert!(unit.contains("serve \"/m/big model.gguf\" --port 9000"), "{unit}{stderr}");
    let path = home.path().join("xdg/systemd/user/motley.service");
    assert!(!path.exists());
    let refused = motley(&home, &["service", "install", "m.gguf", "--prot", "1"], &[]);
    assert!(said(&refused).1.contains("--prot") && !path.exists());
    // Whether systemd runs here or not, the unit is there; it says what is left to do.
    let (_, stderr) = said(&motley(&home, &["service", "install", "m.gguf"], &[("PATH", "")]));
    assert!(path.exists() && stderr.contains("systemctl --user"), "{stderr}");
    assert!(motley(&home, &["service", "remove"], &[("PATH", "")]).status.success());
    assert!(!path.exists());
    let (_, stderr) = said(&motley(&home, &["service", "remove"], &[("PATH", "")]));
    assert!(stderr.contains("nothing is installed"), "{stderr}");
}

#[test]
fn a_server_tells_the_service_manager_when_it_listens() {
    let Some(model) = trained("q4_k_m") else { return };
    let home = tempdir().unwrap();
    let address = home.path().join("notify");
    let manager = UnixDatagram::bind(&address).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut server = Command::new(MOTLEY)
        .arg("serve")
        .arg(&model)
        .args(["--port", "0", "--threads", "1"])
        .env("NOTIFY_SOCKET", &address)
        .env("MOTLEY_CONFIG", home.path().join("config"))
        .env("MOTLEY_STATE", home.path().join("state"))
        .env("CI", "true")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut message = [0; 256];
    let heard = loop {
        match manager.recv(&mut message) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            heard => break heard,
        }
    };
    server.kill().unwrap();
    server.wait().unwrap();
    let message = String::from_utf8_lossy(&message[..heard.expect("a message")]).into_owned();
    assert!(message.contains("READY=1"), "{message}");
}

#[test]
fn a_report_of_a_defect_has_the_machine_and_no_text() {
    let Some(model) = trained("q4_k_m") else { return };
    let home = tempdir().unwrap();
    let asked = "Zwetschgenkuchen";
    let run = ["run", model.to_str().unwrap(), "-p", asked, "-n", "2", "--threads", "1"];
    assert!(motley(&home, &run, &[]).status.success());
    let (report, stderr) = said(&motley(&home, &["bug"], &[]));
    assert!(report.contains("### motley 0.") && report.contains("Processor"), "{report}{stderr}");
    assert!(report.contains("\"threads\": 1"), "{report}");
    assert!(!report.contains(asked) && !report.contains(home.path().to_str().unwrap()), "{report}");
    let (json, _) = said(&motley(&home, &["bug", "--json"], &[]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["last_run"]["threads"] == 1, "{json}");
}
