//! Commands × flags: every flag a command offers changes what it does, or is refused with the
//! reason; what it would ignore it does not offer. What was decided is what `-v` says.

mod support;

use motley_model::KvType;
use motley_plan::device_use::DeviceUse;
use motley_plan::{Decision, Loading};
use motley_testkit::synth::Arch;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::motley;

/// A flag, the others it needs beside it, and what it does to a decision.
struct Flag {
    name: &'static str,
    args: &'static [&'static str],
    obeyed: fn(&Decision) -> bool,
}

/// `SMALL` is replaced by a budget that every command can keep to.
const FLAGS: [Flag; 12] = [
    Flag {
        name: "--threads",
        args: &["--threads", "3"],
        obeyed: |d| (d.threads.prefill.threads, d.threads.decode.threads) == (3, 3),
    },
    Flag {
        name: "--memory",
        args: &["--memory", "SMALL"],
        obeyed: |d| d.loading == Loading::OnDemand && d.memory_bytes.is_some(),
    },
    Flag {
        name: "--devices",
        args: &["--devices", "stand-in"],
        obeyed: |d| matches!(d.device_use, DeviceUse::Experts { .. }) && d.devices.len() == 1,
    },
    Flag {
        name: "--loading",
        args: &["--loading", "on-demand"],
        obeyed: |d| d.loading == Loading::OnDemand && d.memory_bytes.is_none(),
    },
    Flag {
        name: "--policy",
        args: &["--policy", "lru", "--memory", "SMALL"],
        obeyed: |d| d.rules.policies() == "lru",
    },
    Flag {
        name: "--prefetch",
        args: &["--prefetch", "previous-token", "--devices", "stand-in"],
        obeyed: |d| d.rules.prefetchers() == "previous-token",
    },
    Flag { name: "--exact", args: &["--exact"], obeyed: |d| d.exact },
    Flag {
        name: "--context",
        args: &["--context", "1280"],
        obeyed: |d| d.session.context_tokens == 1280,
    },
    Flag { name: "--kv", args: &["--kv", "q8_0"], obeyed: |d| d.session.kv == KvType::Q8_0 },
    Flag { name: "--experts", args: &["--experts", "2"], obeyed: |d| d.experts_used == Some(2) },
    Flag {
        name: "--skip-cold",
        args: &["--skip-cold", "0.5", "--memory", "SMALL"],
        obeyed: |d| d.rules.skip_cold.is_some_and(|skip| skip.part() == 0.5),
    },
    Flag { name: "--chunk", args: &["--chunk", "96"], obeyed: |d| d.session.chunk_tokens == 96 },
];

fn model() -> Option<PathBuf> {
    support::synth(Arch::Qwen3moe)
}

/// Of commands whose findings are kept for every run of the model.
const AS_IT_IS: [(&str, &str); 2] =
    [("--experts", "unexpected argument"), ("--skip-cold", "unexpected argument")];

/// The decisions a run of `motley` took.
fn decisions(said: &str) -> Vec<Decision> {
    let json = said.lines().filter_map(|line| line.split_once("decided: ").map(|(_, json)| json));
    json.map(|json| Decision::from_json(json).expect("a decision")).collect()
}

fn small(model: &Path) -> String {
    let output = motley(&["plan", model.to_str().unwrap(), "--json", "--context", "1024"]);
    let budget = Decision::from_json(&String::from_utf8_lossy(&output.stdout)).unwrap().budget;
    // Some scored tokens' logits need room too.
    (budget.smallest_bytes() + (32 << 20)).to_string()
}

/// Every flag with `command`: refused with those `refused` words, or obeyed.
fn every_flag(command: &[&str], run: &dyn Fn(&[&str]) -> Output, refused: &[(&str, &str)]) {
    let Some(model) = model() else { return };
    let small = small(&model);
    for flag in &FLAGS {
        let args = flag.args.iter().map(|arg| if *arg == "SMALL" { small.as_str() } else { arg });
        let args: Vec<&str> = command.iter().copied().chain(args).chain(["-v"]).collect();
        let output = run(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match refused.iter().find(|(name, _)| *name == flag.name) {
            Some((_, words)) => {
                assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
            }
            None => {
                assert!(output.status.success(), "{args:?}: {said}");
                let found = decisions(&said);
                assert!(!found.is_empty(), "{args:?} decided nothing: {said}");
                assert!(found.iter().all(flag.obeyed), "{args:?}: {found:?}");
            }
        }
    }
}

macro_rules! path {
    ($model:ident) => {
        let Some($model) = model() else { return };
        let $model = $model.to_str().expect("UTF-8");
    };
}

#[test]
fn run_obeys_every_flag() {
    path!(model);
    every_flag(&support::continued(model, "one", &["-n", "2", "--no-record"]), &motley, &[]);
}

#[test]
fn trace_record_obeys_every_flag() {
    path!(model);
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("trace.jsonl");
    let output = output.to_str().expect("UTF-8");
    let record = ["trace", "record", model, "-p", "one", "-n", "2", "--no-record", "-o", output];
    every_flag(&record, &motley, &[]);
}

#[test]
fn bench_obeys_every_flag() {
    path!(model);
    let bench = ["bench", model, "--pairs", "1", "--prefill", "8", "--decode", "2"];
    every_flag(&[&bench[..], &["--repeat", "1"]].concat(), &motley, &[]);
}

#[test]
fn eval_obeys_every_flag() {
    path!(model);
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "one two three four five six seven eight ".repeat(20)).expect("a file");
    let text = text.to_str().expect("UTF-8");
    let eval = ["eval", model, "--text", text, "--items", "1", "--window", "16"];
    every_flag(&eval, &motley, &[]);
}

#[test]
fn plan_obeys_every_flag() {
    path!(model);
    every_flag(&["plan", model], &motley, &[]);
}

#[test]
fn tune_obeys_every_flag_but_the_one_it_finds_itself() {
    path!(model);
    let threads = ("--threads", "tune finds the number of threads itself");
    let refused = [&[threads], &AS_IT_IS[..]].concat();
    every_flag(&["tune", model, "--dry-run"], &motley, &refused);
}

#[test]
fn calibrate_obeys_every_flag_with_a_text() {
    path!(model);
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "one two three four five six seven eight ".repeat(20)).expect("a file");
    let text = text.to_str().expect("UTF-8").to_owned();
    let written = std::cell::Cell::new(0);
    let run = |args: &[&str]| {
        written.set(written.get() + 1);
        let output = folder.path().join(written.get().to_string());
        motley(&[args, &["-o", output.to_str().expect("UTF-8")]].concat())
    };
    let calibrate = ["calibrate", model, "--text", &text, "--read", "48", "--decode", "1"];
    every_flag(&calibrate, &run, &AS_IT_IS);
}

#[test]
fn calibrate_without_a_text_refuses_what_only_a_run_obeys() {
    let offered = |flag: &&Flag| AS_IT_IS.iter().all(|(name, _)| *name != flag.name);
    for flag in FLAGS.iter().filter(offered).filter(|flag| flag.name != "--threads") {
        let args: Vec<&str> =
            flag.args.iter().map(|a| if *a == "SMALL" { "1G" } else { a }).collect();
        let output = motley(&[&["calibrate", "--seconds", "1"][..], &args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("--text"), "{args:?}: {said}");
    }
}

#[test]
fn serve_obeys_every_flag() {
    path!(model);
    let run = |args: &[&str]| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_motley"))
            .env("MOTLEY_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
            .env("MOTLEY_CONFIG", concat!(env!("CARGO_TARGET_TMPDIR"), "/config"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("motley starts");
        let mut line = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        let began = BufReader::new(stdout).read_line(&mut line).expect("a line") > 0;
        // One that began is ended here; one that did not has ended with its reason.
        if began {
            server.kill().expect("it ends");
        }
        let mut stderr = Vec::new();
        server.stderr.take().expect("a pipe").read_to_end(&mut stderr).expect("text");
        let ended = server.wait().expect("it ends");
        let status = if began { std::process::ExitStatus::default() } else { ended };
        Output { status, stdout: line.into_bytes(), stderr }
    };
    every_flag(&["serve", model, "--port", "0", "--json", "--streams", "2"], &run, &[]);
}

#[test]
fn commands_that_run_no_model_offer_none_of_them() {
    let commands: [(&[&str], &[&str]); 7] = [
        (&["doctor"], &[]),
        (&["inspect", "m.gguf"], &["--context"]),
        (&["explain"], &[]),
        (&["predict", "m.gguf"], &["--threads"]),
        (&["sim"], &["--experts", "--skip-cold", "--policy", "--prefetch"]),
        (&["trace", "import", "f", "-o", "g"], &["--experts"]),
        (&["trace", "summary", "f"], &["--experts"]),
    ];
    for (command, offered) in commands {
        let help = motley(&[command, &["--help"]].concat());
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for flag in &FLAGS {
            let is_offered = offered.contains(&flag.name);
            assert_eq!(
                help.contains(&format!("{} ", flag.name)),
                is_offered,
                "{command:?} {}",
                flag.name
            );
            if !is_offered {
                let output = motley(&[command, &flag.args[..2.min(flag.args.len())]].concat());
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("unexpected argument"), "{command:?} {}: {said}", flag.name);
            }
        }
    }
}

#[test]
fn a_plan_is_the_decision_of_the_same_flags_and_runs_unchanged() {
    path!(model);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    let file = file.to_str().expect("UTF-8");
    let small = small(Path::new(model));
    let cases: [&[&str]; 5] = [
        &[],
        &["--experts", "2", "--memory", &small],
        &["--memory", &small, "--chunk", "96", "--threads", "1"],
        &["--devices", "stand-in", "--policy", "lru"],
        &["--exact", "--context", "512"],
    ];
    for flags in cases {
        let plan = motley(&[&["plan", model, "--json", "--prompt", "512"][..], flags].concat());
        assert!(plan.status.success(), "{}", String::from_utf8_lossy(&plan.stderr));
        std::fs::write(file, &plan.stdout).expect("a file");
        let run = support::continued(model, "one two", &["-n", "4", "--no-record", "-v"]);
        let planned = motley(&[&run[..], &["--plan", file]].concat());
        let typed = motley(&[&run[..], flags].concat());
        let [planned, typed] = [planned, typed].map(|output| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            (decisions(&said).pop().expect("a decision"), output.stdout)
        });
        let json = String::from_utf8_lossy(&plan.stdout).into_owned();
        let shown = Decision::from_json(&json).expect("a plan");
        assert_eq!(shown.to_json().unwrap(), planned.0.to_json().unwrap(), "{flags:?}: unchanged");
        assert_eq!(planned.1, typed.1, "{flags:?}: the same text");
        assert_eq!(
            settings(shown),
            settings(typed.0),
            "{flags:?}: what run decides is what plan shows"
        );
    }
    let both = motley(&support::continued(model, "x", &["--plan", file, "--threads", "1"]));
    let said = String::from_utf8_lossy(&both.stderr);
    assert!(!both.status.success() && said.contains("cannot be used with"), "{said}");
}

/// A decision without its predictions, which are for the prompt they were asked for, and without
/// what the machine happened to have free at that moment.
fn settings(decision: Decision) -> Decision {
    let (prefill, decode) = (decision.prefill.clone(), decision.decode.clone());
    let mut settings = decision;
    for (prediction, like) in [(&mut settings.prefill, prefill), (&mut settings.decode, decode)] {
        prediction.terms.clear();
        prediction.tokens = like.tokens.min(1);
        (prediction.tokens_per_s, prediction.pass_s, prediction.hit_rate) = (0.0, 0.0, 0.0);
        (prediction.disk_busy_s, prediction.disk_bytes_per_token) = (0.0, 0.0);
        (prediction.memory_bytes_per_token, prediction.joules_per_token) = (0.0, None);
        prediction.bound_by = motley_plan::Resource::Memory;
    }
    if settings.memory_bytes.is_none() {
        settings.why.memory.clear();
    }
    settings
}

#[test]
fn what_cannot_be_obeyed_together_is_refused_with_the_reason() {
    path!(model);
    let run = support::continued(model, "x", &["-n", "1", "--no-record"]);
    let cases: [(&[&str], &str); 9] = [
        (&["--experts", "5"], "--experts 5: a token of this model uses 4 experts"),
        (&["--skip-cold", "0.5"], "--skip-cold would leave nothing out"),
        (&["--skip-cold", "0.5", "--exact"], "--skip-cold leaves experts out, and --exact"),
        (&["--skip-cold", "0"], "above 0 and at most 1"),
        (&["--skip-cold", "1.5"], "above 0 and at most 1"),
        (&["--loading", "mapped", "--memory", "1G"], "--loading mapped cannot keep to --memory"),
        (&["--policy", "lru"], "--policy would decide nothing"),
        (&["--prefetch", "none"], "--prefetch would decide nothing"),
        (&["--memory", "4X"], "unknown unit `X`"),
    ];
    for (flags, expected) in cases {
        let output = motley(&[&run[..], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{flags:?}: {said}");
    }
}

/// `--draft` is of `run` alone.
#[test]
fn no_other_command_offers_a_draft_model() {
    path!(model);
    let file = ["--draft", model];
    let commands: [&[&str]; 5] = [
        &["serve", model],
        &["bench", model],
        &["plan", model],
        &["eval", model],
        &["trace", "record", model, "-o", "t.jsonl"],
    ];
    for command in commands {
        let output = motley(&[command, &file].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("'--draft'"), "{command:?}: {said}");
    }
    let alone = support::continued(model, "x", &["-n", "1", "--no-record", "--speculate", "off"]);
    let output = motley(&[&alone[..], &file].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("leave one of the two out"), "{said}");
}

/// What a page promises can be asked for.
#[test]
fn flags_in_security_md_are_those_of_serve() {
    let page = include_str!("../../../SECURITY.md");
    let help = motley(&["serve", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let named = page.split('`').skip(1).step_by(2).filter(|code| code.starts_with("--"));
    let named: Vec<&str> = named.filter_map(|code| code.split([' ', '=']).next()).collect();
    assert!(named.len() > 10, "{named:?}");
    for flag in named {
        assert!(
            help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
            "{flag}"
        );
    }
}
