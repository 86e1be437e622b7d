//! Joules as users see them, in `run`, `explain`, `bench` and `/metrics`: by the meter of the
//! machine the test runs on, else by the draw a calibration states, else nowhere.

mod support;

use motley_cost::CalibrationFile;
use motley_testkit::synth::Arch;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use support::server::{Server, continuation};

/// Draw of the processor in the calibration.
const BUSY_W: f64 = 80.0;

/// Runs `motley` with its settings and its last run in `folder`.
fn motley(folder: &Path, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_motley"))
        .env("MOTLEY_STATE", folder)
        .env("MOTLEY_CONFIG", folder)
        .env("CI", "true")
        .args(args)
        .output()
        .expect("motley starts");
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text") + &String::from_utf8_lossy(&stderr)
}

/// Measures this machine and writes into the result what its processor draws.
fn calibrate(folder: &Path) {
    let kept = folder.join("calibrations");
    std::fs::create_dir(&kept).unwrap();
    let file = kept.join("2026-01-31T12-00-00Z.toml");
    let (path, disk) = (file.to_str().unwrap(), folder.to_str().unwrap());
    motley(folder, &["calibrate", "--seconds", "2", "--threads", "1", "--disk", disk, "-o", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut table = CalibrationFile::parse(&text, path).expect("a calibration");
    table.machine.devices.iter_mut().for_each(|device| device.busy_w = Some(BUSY_W));
    std::fs::write(&file, table.to_toml()).unwrap();
}

/// Whether `source` is a meter of this machine.
fn is_metered(energy: &Value) -> bool {
    energy["source"]["meter"].is_string()
}

#[test]
fn joules_are_by_meter_or_by_model_and_unknown_without_either() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = support::continued(model, "one two", &["-n", "8", "--threads", "1"]);
    let json = [&words[..], &["--json"]].concat();
    let unknown: Value = serde_json::from_str(&motley(folder, &json)).expect("JSON");
    assert!(unknown["energy"].is_null() || is_metered(&unknown["energy"]), "{unknown}");

    calibrate(folder);
    let report: Value = serde_json::from_str(&motley(folder, &json)).expect("JSON");
    let energy = &report["energy"];
    let per_token = energy["joules_per_token"].as_f64().expect("it is known");
    if !is_metered(energy) {
        assert_eq!(energy["source"], "model");
        // Everything is in memory and nothing waits, so it draws what a busy processor does.
        let watts = per_token * report["decode_tokens_per_s"].as_f64().unwrap();
        assert!((watts / BUSY_W - 1.0).abs() < 1e-3, "{watts} W in {report}");
    }
    let how = if is_metered(energy) { "by meter " } else { "by model" };
    let said = motley(folder, &words);
    let line = said.lines().find(|line| line.contains("J/token")).expect("a line about energy");
    assert!(line.contains(how), "{line}");
    let page = motley(folder, &["explain"]);
    assert!(page.contains("J/token to decode") && page.contains(how), "{page}");
    assert!(page.contains("J/token predicted"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");

    let server = Server::start_in(folder, Path::new(model), &[]);
    assert_eq!(server.post("/v1/completions", &continuation("one two", 8, false)).0, 200);
    let source = if is_metered(energy) { "meter" } else { "model" };
    let joules = server.metric(&format!("motley_energy_joules_total{{source=\"{source}\"}}"));
    let busy_s = server.metric("motley_compute_seconds_total");
    let as_drawn = (joules / (BUSY_W * busy_s) - 1.0).abs() < 1e-3;
    assert!(busy_s > 0.0 && (as_drawn || is_metered(energy)), "{joules} J in {busy_s} s");

    let pairs = ["bench", model, "--pairs", "1", "--repeat", "1", "--prefill", "16"];
    let args = [&pairs[..], &["--decode", "8", "--threads", "1", "--json"]].concat();
    let bench: Value = serde_json::from_str(&motley(folder, &args)).expect("JSON");
    let metered = bench["energy"]["ratio"]["median"].as_f64().is_some_and(|ratio| ratio > 0.0);
    assert_eq!(metered, is_metered(energy), "no model speaks for the bare engine: {bench}");
    assert_eq!(bench["meter"].is_string(), metered, "{bench}");
}
