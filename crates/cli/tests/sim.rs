//! The doors of the simulator: `sim`, `reproduce` and `trace` run, speak JSON, repeat with a
//! seed, and name what is there when something is not.

mod support;

use motley_testkit::synth::Arch;
use serde_json::Value;
use std::path::Path;
use support::motley;

/// A simulation that takes no time.
const SMALL: [&str; 7] =
    ["sim", "--model-shape", "4x16x2:64x32", "--prefill", "32", "--tokens", "24"];

fn text_of(args: &[&str]) -> String {
    let output = motley(args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn json_of(args: &[&str]) -> Value {
    serde_json::from_str(&text_of(&[args, &["--json"]].concat())).expect("JSON")
}

fn error_of(args: &[&str]) -> String {
    let output = motley(args);
    assert!(!output.status.success(), "{args:?} should fail");
    String::from_utf8(output.stderr).expect("text")
}

fn small(more: &[&'static str]) -> Vec<&'static str> {
    [&SMALL[..], more].concat()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn sim_alone_says_what_it_simulated_in_eighty_columns() {
    let page = text_of(&["sim"]);
    assert!(page.contains("qwen3-30b-a3b on laptop-8gb-gpu: made routing, seed 0"), "{page}");
    for shown in ["Prefill", "Decode", "Hit rate", "gpu", "cpu → gpu", "idle"] {
        assert!(page.contains(shown), "no {shown} in {page}");
    }
    let widest = page.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 80), "{page}");
}

#[test]
fn shares_of_the_link_add_up_in_json() {
    let report = json_of(&small(&["--cache", "25%"]));
    assert_eq!(report["prefill"]["tokens"], 32);
    assert_eq!(report["decode"]["tokens"], 24);
    assert_eq!(report["cached_share"], 0.25);
    let hits = report["hit_rate"].as_f64().expect("a number");
    assert!((0.0..=1.0).contains(&hits), "{hits}");
    let busy = report["busy"].as_array().expect("units");
    let link = busy.iter().filter(|row| row["unit"].as_str().is_some_and(|u| u.contains('→')));
    let sum: f64 = link.map(|row| row["share"].as_f64().expect("a number")).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{report}");
}

#[test]
fn the_same_seed_gives_the_same_output_and_another_does_not() {
    let run = |seed| text_of(&small(&["--faults", "3", "--cache", "8", "--json", "--seed", seed]));
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}

#[test]
fn every_strategy_policy_and_prefetcher_runs_by_name() {
    let strategies =
        ["on-demand", "cpu-on-miss", "layer-split", "pinned", "monde", "timelines", "balanced"];
    let prefetchers = ["none", "previous-token", "next-layer", "prefill-counted", "refill"];
    let policies = ["lru", "lfu", "lfru", "mrs", "blend"];
    let all =
        [("--strategy", &strategies[..]), ("--prefetch", &prefetchers), ("--policy", &policies)];
    for (flag, names) in all {
        for name in names {
            let report = json_of(&small(&["--cache", "25%", flag, name]));
            assert_eq!(report[&flag[2..]], *name);
            assert!(report["decode"]["tokens_per_s"].as_f64().expect("a number") > 0.0);
        }
    }
}

#[test]
fn each_memory_may_have_rules_of_its_own() {
    // A GPU beside a disk: the model is beyond RAM.
    let large = ["sim", "--machine", "desktop-24gb-gpu-32gb", "--model-shape", "gpt-oss-120b"];
    let large = [&large[..], &["--prefill", "4", "--tokens", "4"]].concat();
    let apart = ["--policy", "ram=lru,gpu=blend", "--prefetch", "none,gpu=refill"];
    let report = json_of(&[&large[..], &apart].concat());
    assert_eq!(report["policy"], "ram=lru,gpu=blend");
    assert_eq!(report["prefetch"], "ram=none,gpu=refill");
    let hybrid = small(&["--cache", "25%", "--policy", "ram=lru"]);
    assert!(error_of(&hybrid).contains("no expert comes to RAM from a disk"));
    let unknown = small(&["--cache", "25%", "--policy", "disk=lru"]);
    assert!(error_of(&unknown).contains("unknown memory `disk`; there are ram, gpu"));
}

#[test]
fn rules_are_chosen_by_replay_and_kept_only_if_they_hold() {
    let more = ["--cache", "25%", "--tokens", "64", "--choose"];
    let args = [&["sim", "--model-shape", "4x16x2:64x32", "--prefill", "32"][..], &more].concat();
    let found = json_of(&args);
    assert_eq!(found["default"]["prefetch"], "whole-layer");
    assert!(found["tried"].as_u64().expect("a number") > 10, "{found}");
    assert!(found["gain"].as_f64().expect("a number") >= 0.0, "{found}");
    let held_out = found["held_out_gain"].as_f64().expect("a number");
    assert_eq!(found["kept"], held_out >= 0.01, "{found}");
    let page = text_of(&args);
    assert!(
        page.contains("Held out") && page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    assert!(error_of(&small(&["--cache", "25%", "--choose"])).contains("24 decoded tokens"));
    assert!(error_of(&small(&["--choose", "--policy", "lru"])).contains("--policy"));
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let table: [(&[&str], &[&str]); 8] = [
        (&["sim", "--machine", "cray-1"], &["cray-1", "laptop-8gb-gpu", ".toml"]),
        (&["sim", "--trace", "no/such.jsonl"], &["no/such.jsonl", "motley trace record"]),
        (&["sim", "--model-shape", "hal"], &["hal", "qwen3-30b-a3b", "48x128x8:2048x768"]),
        (&["sim", "--strategy", "magic"], &["magic", "timelines"]),
        (&["sim", "--policy", "magic"], &["magic", "blend"]),
        (&["sim", "--prefetch", "magic"], &["magic", "next-layer"]),
        (&["sim", "--cache", "some"], &["some", "25%"]),
        (&["reproduce", "flashmoe"], &["flashmoe", "hybrimoe", "gpu-ndp"]),
    ];
    for (args, words) in table {
        let error = error_of(args);
        words.iter().for_each(|word| assert!(error.contains(word), "no {word} in {error}"));
    }
    let notes = path(folder.path(), "notes.txt");
    std::fs::write(&notes, "no trace at all").unwrap();
    assert!(error_of(&["trace", "summary", &notes]).contains("BigMoeOnEdge"));
}

#[test]
fn timeline_and_picture_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (timeline, svg) = (path(folder.path(), "t.json"), path(folder.path(), "layer.svg"));
    let files = ["--timeline", &timeline, "--svg", &svg, "--layer", "2", "--cache", "25%"];
    text_of(&[&SMALL[..], &files].concat());
    let timeline: Value = serde_json::from_slice(&std::fs::read(timeline).unwrap()).unwrap();
    assert!(timeline["traceEvents"].as_array().expect("events").len() > 100);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("layer 2"));
    let wrong = ["--svg", &svg, "--layer", "9"];
    assert!(error_of(&[&SMALL[..], &wrong].concat()).contains("layers 0 to 3"));
}

#[test]
fn curves_compare_every_policy_with_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "curves");
    let answer = json_of(&[&SMALL[..], &["--curves", &out]].concat());
    let curves = answer["compared"][0]["curves"].as_array().expect("curves");
    let names: Vec<&str> = curves.iter().filter_map(|curve| curve["policy"].as_str()).collect();
    assert_eq!(names, ["lru", "lfu", "lfru", "mrs", "blend", "popularity", "belady"]);
    let report = std::fs::read_to_string(folder.path().join("curves/cache-policies.md")).unwrap();
    assert!(report.contains("hit-rate-per-layer.svg"));
    assert!(folder.path().join("curves/hit-rate-per-layer.svg").exists());
}

#[test]
fn workers_are_compared_with_the_machine_alone_and_with_whole_layers() {
    let asked = ["--machine", "desktop-24gb-gpu", "--workers", "2"];
    let wanted = ["sim", "--model-shape", "qwen3-235b-a22b", "--prefill", "64", "--tokens", "24"];
    let answer = json_of(&[&wanted[..], &asked].concat());
    let number = |name: &str| answer[name].as_f64().expect("a number");
    assert_eq!(number("measured_tokens"), 16.0, "two thirds");
    assert!(number("held_alone") < 1.0 && number("held") == 1.0, "{answer}");
    assert!(number("with_workers_tokens_per_s") > 1.3 * number("alone_tokens_per_s"), "{answer}");
    assert!(number("layer_split_tokens_per_s") > 0.0);
    let each = answer["each"].as_array().expect("workers");
    assert!(each.len() == 2 && each.iter().all(|one| one["rows"].as_u64() > Some(0)), "{each:?}");
    let slow =
        json_of(&[&wanted[..], &asked, &["--cable", "0.1", "--round-trip", "2000"]].concat());
    let speed = |answer: &Value| answer["with_workers_tokens_per_s"].as_f64();
    assert!(speed(&slow) < speed(&answer), "{slow}");
    let page = text_of(&[&wanted[..], &asked].concat());
    assert!(page.contains("this machine alone") && page.lines().all(|l| l.chars().count() <= 80));
    let few = ["sim", "--model-shape", "4x16x2:64x32", "--tokens", "4", "--workers", "1"];
    assert!(error_of(&few).contains("--workers needs 8"));
    assert!(error_of(&["sim", "--cable", "1"]).contains("--workers"));
    assert!(error_of(&["sim", "--workers", "1", "--cable", "0"]).contains("not in 0.001 to 1000"));
}

#[test]
fn reproduce_prints_paper_ours_and_assumptions() {
    let reports = json_of(&["reproduce", "hybrimoe", "--dry-run"]);
    let figure = &reports[0]["figures"][0];
    assert_eq!(
        (figure["figure"].as_str(), figure["paper"].as_f64()),
        (Some("decode, average"), Some(1.7))
    );
    assert!(figure["difference"].as_f64().expect("a number").abs() < 0.15);
    assert!(reports[0]["assumed"].as_array().expect("a list").len() > 5);
    assert_eq!(reports[0]["written"].as_array().expect("a list").len(), 0);
}

#[test]
fn reproduce_machines_compares_three_systems_on_every_machine() {
    let reports = json_of(&["reproduce", "machines", "--dry-run"]);
    let rows = reports[0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 9);
    let of = |regime: &str| rows.iter().filter(|row| row["regime"] == regime).count();
    assert_eq!((of("hybrid"), of("one-memory"), of("beyond-ram")), (4, 4, 1));
    for row in rows {
        let speed = |name: &str| row["decode"][name].as_f64();
        assert!(speed("ours").expect("a speed") > 1.0, "{row}");
        assert_eq!(speed("pinned").is_none(), row["regime"] == "beyond-ram", "{row}");
        assert_eq!(row["prefill"].as_array().map(Vec::len), Some(4));
    }
    assert_eq!(reports[0]["figures"][0]["paper"], 1.7, "the goal");
}

#[test]
fn traces_of_other_projects_are_imported() {
    let Some(csv) = support::shared("routing_traces/bigmoe-gptoss.route.csv") else { return };
    let Some(waste) = support::shared("routing_traces/waste-trace_olmoe_299.jsonl") else { return };
    let (csv, waste) = (csv.to_str().unwrap(), waste.to_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "out.trace.jsonl");
    let answer = json_of(&["trace", "import", csv, "-o", &out]);
    assert_eq!(answer["header"]["experts"], 128);
    let summary = json_of(&["trace", "summary", &out]);
    assert_eq!(summary["visits"], answer["visits"]);
    assert_eq!(summary, json_of(&["trace", "summary", csv]), "the same in both formats");
    assert!(error_of(&["trace", "import", waste, "-o", &out]).contains("--experts"));
    let answer = json_of(&["trace", "import", waste, "--experts", "64", "-o", &out]);
    assert_eq!(
        (answer["header"]["layers"].as_u64(), answer["visits"].as_u64()),
        (Some(16), Some(4784))
    );
}

#[test]
fn what_the_engine_records_the_simulator_replays() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "run.trace.jsonl");
    let prompt = "word ".repeat(40);
    let record = ["trace", "record", model, "-p", &prompt, "-n", "9", "-o", &out];
    let counts = json_of(&[&record[..], &["--threads", "1", "--chunk", "32"]].concat());
    let prompt_tokens = counts["prefill_tokens"].as_u64().expect("a count");
    assert!(prompt_tokens > 32, "two chunks: {counts}");
    assert_eq!(counts["decode_tokens"], 8, "the last token is not computed");
    let summary = json_of(&["trace", "summary", &out]);
    assert_eq!(summary["prefill_tokens"], counts["prefill_tokens"]);
    assert_eq!(
        (summary["prefill_passes"].as_u64(), summary["decode_passes"].as_u64()),
        (Some(2), Some(8))
    );
    let report = json_of(&["sim", "--trace", &out, "--model", model, "--cache", "25%"]);
    assert_eq!(report["decode"]["tokens"], 8);
    // Every layer of a decode pass needs k = 4 experts; prefill needs at least as many.
    assert!(report["lookups"].as_u64().expect("a count") >= 8 * 3 * 4, "{report}");
    let other = ["sim", "--trace", &out, "--model-shape", "mixtral-8x7b"];
    assert!(error_of(&other).contains("16 experts"));
}
