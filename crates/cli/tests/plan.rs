//! `motley plan` as typed: a page of 80 columns, JSON that reads back, refusals with a way out.

mod support;

use motley_plan::{Decision, Regime};
use motley_testkit::synth::Arch;
use support::{motley, motley_in};

fn text(args: &[&str]) -> String {
    let output = motley(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Sizes that do not follow from memory.
const SHAPE: [&str; 4] = ["--context", "4096", "--chunk", "512"];

#[test]
fn the_page_fits_eighty_columns_on_every_kind_of_machine() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    for machine in ["this", "desktop-24gb-gpu", "mac-64gb", "mate-40-pro"] {
        let page = text(&["plan", model.to_str().unwrap(), "--machine", machine]);
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{machine}: {line}");
        }
        for part in ["Regime", "Memory", "tokens per second", "bound by", "waiting for disk"] {
            assert!(page.contains(part), "{machine}: no {part} in\n{page}");
        }
    }
}

#[test]
fn a_small_budget_is_beyond_ram_and_json_reads_back() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    let everything = Decision::from_json(&text(&["plan", model, "--json", "--context", "4096"]))
        .expect("a plan");
    assert_eq!(everything.placement.regime, Regime::OneMemory);
    let bytes = (everything.budget.smallest_bytes() + 5 * everything.budget.slot_bytes).to_string();
    let less =
        text(&[&["plan", model, "--json", "--memory", &bytes, "--kv", "f16"][..], &SHAPE].concat());
    let less = Decision::from_json(&less).expect("a plan");
    assert_eq!((less.placement.regime, less.placement.ram_slots()), (Regime::BeyondRam, 7));
    assert!(less.decode.tokens_per_s < everything.decode.tokens_per_s);
}

#[test]
fn what_cannot_be_says_what_helps() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    for (args, expected) in [
        (["plan", model, "--memory", "20M"], "needs at least"),
        (["plan", model, "--machine", "cray-1"], "m2-ultra"),
        (["plan", model, "--profile", "no/such/profile"], "no/such/profile"),
        (["plan", model, "--goal", "fame"], "energy"),
    ] {
        let output = motley(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_saved_plan_runs_and_one_of_another_model_is_refused() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let model = model.to_str().unwrap();
    let whole = Decision::from_json(&text(&["plan", model, "--json", "--context", "4096"]))
        .expect("a plan");
    let bytes = (whole.budget.smallest_bytes() + 5 * whole.budget.slot_bytes).to_string();
    let saved =
        text(&[&["plan", model, "--json", "--memory", &bytes, "--kv", "f16"][..], &SHAPE].concat());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    std::fs::write(&path, &saved).unwrap();
    let path = path.to_str().unwrap();
    let run = support::continued(model, "one two", &["-n", "4", "--plan", path]);
    let output = motley_in(folder.path(), &run);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("7 of"), "{said}");
    // What it left behind explains itself.
    let page = String::from_utf8(motley_in(folder.path(), &["explain"]).stdout).unwrap();
    assert!(page.contains("waiting for disk") && page.contains("memory for all"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let experts = format!("\"experts\": {}", whole.budget.experts);
    std::fs::write(path, saved.replace(&experts, "\"experts\": 7")).unwrap();
    assert!(!motley_in(folder.path(), &run).status.success(), "a plan for other experts");
}
