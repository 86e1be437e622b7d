//! The library inside prebuilt llama.cpps of eighteen months, as npm has them, unchanged: the same
//! text as without it, experts ours, and not one of their bytes read while the model loads.

use motley_testkit::fixtures;
use motley_testkit::synth::Arch;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// node-llama-cpp with its llama.cpp, oldest first, and its tables (`ggml::hosted::sizes`).
const HOSTS: [(&str, &str, &str); 4] = [
    ("3.10.0", "b5640", "interface 1, tables 6/9/13/15"),
    ("3.14.2", "b6845", "interface 2, tables 6/9/14/15"),
    ("3.18.1", "b8390", "interface 2, tables 6/9/14/15"),
    ("3.22.1", "v0.5.0", "interface 2, tables 6/11/16/15"),
];

/// Of 240 experts of 1.6 MB each, a few have room.
const BUDGET: &str = "400M";

const MIB: u64 = 1 << 20;

/// A host with the library at hand.
struct Host {
    packages: PathBuf,
    library: PathBuf,
}

/// What a host said of a run.
struct Ran {
    report: Value,
    stderr: String,
}

impl Host {
    fn node(version: &str) -> Option<Self> {
        let library = fixtures::dropin_library()?;
        let own = format!("node-llama-cpp@{version}");
        let prebuilt = format!("@node-llama-cpp/linux-x64@{version}");
        let name = format!("node-llama-cpp-{version}");
        Some(Self { packages: fixtures::node(&name, &[&own, &prebuilt])?, library })
    }

    fn command(&self, model: &Path, more: &[&str]) -> Command {
        self.script("generate.mjs", model, more)
    }

    fn script(&self, script: &str, model: &Path, more: &[&str]) -> Command {
        let mut command = Command::new("node");
        command
            .arg("--expose-gc")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(script))
            .args([&self.packages, model])
            .args(more)
            .env_remove("GGML_BACKEND_PATH");
        command
    }

    /// As its users have it.
    fn stock(&self, model: &Path) -> Ran {
        forget_cached(model);
        ran(self.command(model, &[]).output().unwrap())
    }

    /// With the library, and these variables.
    fn ours(&self, model: &Path, variables: &[(&str, &str)], more: &[&str]) -> Ran {
        forget_cached(model);
        let mut command = self.command(model, more);
        command.env("GGML_BACKEND_PATH", &self.library).env("MOTLEY_EXPLAIN", "1");
        ran(command.envs(variables.iter().copied()).output().unwrap())
    }
}

fn ran(output: Output) -> Ran {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = stdout.lines().last().unwrap_or_default();
    assert!(output.status.success(), "{}\n{stdout}{stderr}", output.status);
    Ran { report: serde_json::from_str(last).unwrap(), stderr }
}

impl Ran {
    fn answers(&self) -> &Value {
        &self.report["answers"]
    }

    fn number(&self, key: &str) -> u64 {
        self.report[key].as_u64().unwrap()
    }

    fn holds_experts(&self) -> bool {
        self.report["buffers"].to_string().contains("MOTLEY_EXPERTS")
    }
}

/// Has the system forget the file's pages, so that whoever reads it is seen.
fn forget_cached(file: &Path) {
    let dropped = Command::new("dd")
        .arg(format!("of={}", file.display()))
        .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
        .status();
    assert!(dropped.unwrap().success());
}

/// A file of one's own: other tests read the same models, and what they read is in memory.
fn copied(model: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("model.gguf");
    std::fs::copy(model, &copy).unwrap();
    // Data beside the project may be read-only.
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o644)).unwrap();
    copy
}

fn newest() -> Option<Host> {
    Host::node(HOSTS[HOSTS.len() - 1].0)
}

#[test]
fn every_host_gives_the_same_text_and_reads_no_expert_at_load() {
    let Some(model) = fixtures::upcycled(8, 2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = copied(&model, folder.path());
    let experts = 360 * MIB;
    for (version, release, tables) in HOSTS {
        let Some(host) = Host::node(version) else { return };
        let stock = host.stock(&model);
        let ours = host.ours(&model, &[("MOTLEY_MEMORY", BUDGET)], &[]);
        assert_eq!(stock.report["release"], release);
        assert!(ours.stderr.contains(tables), "{release}: {}", ours.stderr);
        assert_eq!(ours.answers(), stock.answers(), "{release}");
        assert!(ours.holds_experts() && !stock.holds_experts(), "{release}: {}", ours.report);
        assert!(ours.stderr.contains(" of 240 experts in memory"), "{release}: {}", ours.stderr);
        let read = (stock.number("readBytes"), ours.number("readBytes"));
        assert!(read.0 > experts && read.1 < 80 * MIB, "{release}: read {read:?}");
        let resident = (stock.number("residentKib") << 10, ours.number("residentKib") << 10);
        assert!(resident.0 > resident.1 + experts / 2, "{release}: resident {resident:?}");
    }
}

#[test]
fn the_trained_model_says_the_same() {
    let (Some(host), Some(model)) = (newest(), fixtures::trained("q8_0")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = copied(&model, folder.path());
    let variables = [("MOTLEY_LOADING", "on-demand")];
    let (stock, ours) = (host.stock(&copy), host.ours(&copy, &variables, &[]));
    assert!(ours.holds_experts(), "{}", ours.stderr);
    assert_eq!(ours.answers(), stock.answers());
}

#[test]
fn a_loader_that_reads_is_served_from_its_open_file() {
    let (Some(host), Some(model)) = (newest(), fixtures::upcycled(8, 2)) else { return };
    let ours = host.ours(&model, &[("MOTLEY_MEMORY", BUDGET)], &["read"]);
    assert!(ours.holds_experts(), "{}", ours.stderr);
    assert_eq!(ours.answers(), host.stock(&model).answers());
}

#[test]
fn two_models_in_one_process_answer_both_and_figures_are_left() {
    let (Some(host), Some(model)) = (newest(), fixtures::upcycled(8, 2)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("run.json");
    let variables = [("MOTLEY_MEMORY", BUDGET), ("MOTLEY_STATS", stats.to_str().unwrap())];
    let ours = host.ours(&model, &variables, &["mapped", "2"]);
    let alone = host.stock(&model).answers()[0].clone();
    assert_eq!(ours.answers().as_array().unwrap(), &[alone.clone(), alone]);
    let record: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    assert_eq!(record["expert_layers"], 30);
    // One prompt each, and 31 tokens after the first.
    assert!(record["decode"]["tokens"].as_u64().unwrap() >= 62, "{record}");
    assert!(record["streaming"]["cache_slots"].as_u64().unwrap() < 240, "{record}");
}

#[test]
fn what_is_not_for_us_is_left_to_the_host_with_one_line() {
    let (Some(host), Some(model)) = (newest(), fixtures::upcycled(8, 2)) else { return };
    let stock = host.stock(&model);
    for (variable, value, line) in [
        ("MOTLEY_THREADS", "4", "not taking part: MOTLEY_THREADS=4: threads are the host's (`-t`)"),
        (
            "MOTLEY_MEMORY",
            "much",
            "not taking part: MOTLEY_MEMORY=much: unknown unit `much`; write 512M or 4G",
        ),
        ("MOTLEY_MEMORY", "64M", "64 MiB are too little: it needs at least "),
        ("MOTLEY_OFF", "1", "not taking part: MOTLEY_OFF is set"),
        ("MOTLEY_MEMORY", "64G", "left to the host"),
        (
            "MOTLEY_DEVICES",
            "cuda0",
            "this host has no device `cuda0`; MOTLEY_DEVICES takes auto, cpu",
        ),
    ] {
        let ours = host.ours(&model, &[(variable, value)], &[]);
        assert!(!ours.holds_experts(), "{variable}={value}: {}", ours.report);
        assert!(ours.stderr.contains(line), "{variable}={value}: {}", ours.stderr);
        assert_eq!(ours.answers(), stock.answers(), "{variable}={value}");
    }
}

#[test]
fn loading_and_freeing_again_and_again_leaves_nothing_behind() {
    let (Some(host), Some(model)) = (newest(), fixtures::synthetic(Arch::Qwen3moe)) else { return };
    let cycles = std::env::var("MOTLEY_TEST_CYCLES").unwrap_or_else(|_| "30".into());
    let mut command = host.script("cycles.mjs", &model, &[&cycles]);
    command.env("GGML_BACKEND_PATH", &host.library).env("MOTLEY_LOADING", "on-demand");
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.answers().as_array().unwrap().len(), 1, "{}", ran.report);
    let times = ran.stderr.matches("experts in memory").count();
    assert_eq!(times.to_string(), cycles, "every load is ours");
    let held = |when: &str, what: &str| ran.report[when][what].as_u64().unwrap();
    assert!(held("late", "threads") <= held("early", "threads") + 1, "{}", ran.report);
    assert!(held("late", "files") <= held("early", "files") + 1, "{}", ran.report);
    // The host itself grows a little with every load.
    assert!(held("late", "anonKib") < held("early", "anonKib") + (48 << 10), "{}", ran.report);
}
