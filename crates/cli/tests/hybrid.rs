//! Experts shared with a device, from the command line: a name that is not there is answered with
//! those that are, the stand-in says what the CPU says and its timeline has every lane, and the
//! engine's threads reach the simulator's speed-ups.

mod support;

use motley_testkit::synth::Arch;
use serde_json::Value;
use support::motley;

fn model() -> Option<String> {
    Some(support::synth(Arch::Olmoe)?.to_str().expect("UTF-8").to_owned())
}

fn text(args: &[&str]) -> String {
    let output = motley(args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

/// A run whose words tell whether experts were computed alike.
fn story(model: &str) -> Vec<&str> {
    let rest = ["-n", "24", "--exact", "--threads", "1", "--no-record"];
    support::continued(model, "Once upon a time", &rest)
}

#[test]
fn an_unknown_device_is_answered_with_those_there_are() {
    let Some(model) = model() else { return };
    let output =
        motley(&support::continued(&model, "x", &["-n", "1", "--devices", "cuda7", "--no-record"]));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(error.contains("`cuda7`") && error.contains("auto, cpu"), "{error}");
}

#[test]
fn the_stand_in_says_what_the_cpu_says_and_draws_every_lane() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("timeline.json");
    let timeline = file.to_str().expect("UTF-8");
    let run = story(&model);
    let alone = text(&[&run[..], &["--devices", "cpu"]].concat());
    let drawn = folder.path().join("layer.svg");
    let picture = drawn.to_str().expect("UTF-8");
    let shared = ["--devices", "stand-in", "--timeline", timeline, "--picture", picture];
    assert_eq!(text(&[&run[..], &shared].concat()), alone);
    let trace: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for (row, lane) in ["dense", "device", "copies", "CPU"].iter().enumerate() {
        let named = events.iter().any(|event| event["args"]["name"] == *lane);
        let on = |process: u32| {
            let of = |event: &&Value| event["ph"] == "X" && event["pid"] == process;
            events.iter().filter(of).any(|event| event["tid"] == row)
        };
        assert!(named && on(0) && on(1), "nothing on {lane}");
    }
    for process in ["this run", "simulator"] {
        assert!(events.iter().any(|event| event["args"]["name"] == process), "no {process}");
    }
    let svg = std::fs::read_to_string(&drawn).expect("a picture");
    assert!(svg.contains("as it ran") && svg.contains("in the simulator"), "both are drawn");
}

/// Disk, memory and a device at once: the same text, and a lane for each.
#[test]
fn experts_on_disk_in_memory_and_on_a_device_say_the_same() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("timeline.json");
    let timeline = file.to_str().expect("UTF-8");
    let run = story(&model);
    let alone = text(&[&run[..], &["--devices", "cpu"]].concat());
    let shared = ["--devices", "stand-in=4M", "--loading", "on-demand", "--timeline", timeline];
    assert_eq!(text(&[&run[..], &shared].concat()), alone);
    let trace: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for (row, lane) in ["dense", "CPU", "disk", "device", "copies"].iter().enumerate() {
        let is_named = |event: &Value| event["args"]["name"] == *lane && event["tid"] == row;
        assert!(events.iter().any(is_named), "no {lane}");
        let of = |event: &Value| event["ph"] == "X" && event["pid"] == 0 && event["tid"] == row;
        assert!(events.iter().any(of), "nothing on {lane}");
    }
}

#[test]
fn several_devices_of_different_size_say_the_same() {
    let Some(model) = model() else { return };
    let run = story(&model);
    let alone = text(&[&run[..], &["--devices", "cpu"]].concat());
    let devices = ["--devices", "stand-in=4M, stand-in=2M"];
    assert_eq!(text(&[&run[..], &devices].concat()), alone);
}

#[test]
fn a_run_with_nothing_to_draw_says_so_before_it_answers() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("timeline.json");
    let run = support::continued(&model, "Once", &["-n", "4", "--no-record", "--devices", "cpu"]);
    let output = motley(&[&run[..], &["--timeline", file.to_str().expect("UTF-8")]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("nothing to draw"), "{error}");
    assert!(output.stdout.is_empty() && !file.exists());
}

#[test]
fn a_streamed_run_draws_disk_and_cpu() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("timeline.json");
    let timeline = file.to_str().expect("UTF-8");
    let run = support::continued(
        &model,
        "Once upon a time",
        &["-n", "4", "--threads", "1", "--no-record"],
    );
    text(&[&run[..], &["--loading", "on-demand", "--timeline", timeline]].concat());
    let trace: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    for row in 0..3 {
        assert!(events.iter().any(|event| event["ph"] == "X" && event["tid"] == row), "row {row}");
    }
}

/// The quick variant: one model, a quarter of its experts cached. No other test runs beside it
/// (`.config/nextest.toml`), but other programs may: one retry is allowed.
#[test]
fn the_engines_threads_reach_the_simulators_speedups() {
    let close = || {
        let report = text(&["reproduce", "hybrimoe", "--engine=quick", "--json"]);
        let speedups: Vec<Value> = serde_json::from_str(&report).expect("JSON");
        assert_eq!(speedups.len(), 2);
        speedups.iter().all(|one| one["difference"].as_f64().expect("a number").abs() <= 0.1)
    };
    assert!(close() || close(), "twice more than 10 % off");
}
