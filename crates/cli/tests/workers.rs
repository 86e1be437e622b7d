//! A head and its workers as people start them: paired by a code, the same text with one, two and
//! killed workers, and strangers refused.

mod support;

use motley_testkit::synth::Arch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use support::server::Server;
use support::{motley_in, synth};

const MOTLEY: &str = env!("CARGO_BIN_EXE_motley");
const PROMPT: &str = "The history of the city begins with";

/// A worker in a process of its own; killed when dropped.
struct Worker {
    process: Child,
    address: String,
    code: String,
    _state: tempfile::TempDir,
}

impl Worker {
    fn start(model: &Path, flags: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut process = Command::new(MOTLEY)
            .args(["worker", "--json", "--pair", "--trust-file", "--threads", "1"])
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .arg(model)
            .env("MOTLEY_STATE", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        let (address, code) = (text("address"), text("code"));
        Self { process, address, code, _state: state }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The head's machine: what it keeps, and its model.
struct Head<'a> {
    state: tempfile::TempDir,
    model: &'a Path,
}

impl Head<'_> {
    fn command(&self, tokens: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(MOTLEY);
        command
            .args(["run", "--exact", "--raw", "--trust-file", "--no-record", "--threads", "1"])
            .args(["--temperature", "0", "-n", tokens, "-p", PROMPT])
            .args(flags)
            .arg(self.model)
            .env("MOTLEY_STATE", self.state.path())
            .env("CI", "1")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, flags: &[&str]) -> Output {
        self.command("24", flags).output().unwrap()
    }

    fn says(&self, flags: &[&str]) -> (String, String) {
        let output = self.run(flags);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{flags:?}: {err}");
        (out, err)
    }
}

#[test]
fn heads_meet_workers_by_a_code_and_say_the_same_with_them() {
    let Some(model) = synth(Arch::Qwen3moe) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    let (alone, _) = head.says(&[]);
    let (first, second) =
        (Worker::start(&model, &["--layers", "0-1"]), Worker::start(&model, &["--layers", "2"]));

    let stranger = head.run(&["--workers", &first.address]);
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert!(!stranger.status.success() && said.contains("--pair-code"), "{said}");
    let wrong = if first.code == "1111-1111" { "2222-2222" } else { "1111-1111" };
    let guess = head.run(&["--workers", &first.address, "--pair-code", wrong]);
    let said = String::from_utf8_lossy(&guess.stderr).into_owned();
    assert!(!guess.status.success() && said.contains("cannot pair with worker"), "{said}");

    for worker in [&first, &second] {
        let (text, told) = head.says(&["--workers", &worker.address, "--pair-code", &worker.code]);
        assert_eq!(text, alone);
        assert!(told.contains("paired with worker") && told.contains("rows in"), "{told}");
    }
    // Known from now on, whatever code is typed, and both at once.
    head.says(&["--workers", &first.address, "--pair-code", wrong]);
    let both = format!("{},{}", first.address, second.address);
    let (text, told) = head.says(&["--workers", &both]);
    assert_eq!(text, alone);
    assert_eq!(told.matches(" rows in ").count(), 2, "{told}");
    assert!(!told.contains("paired"), "{told}");
    // Beyond memory at home as well.
    let (text, _) = head.says(&["--workers", &both, "--loading", "on-demand"]);
    assert_eq!(text, alone);
}

/// Pairing writes keys and heads connect after files and calls were given up.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_is_in_the_sandbox_while_it_answers() {
    let Some(model) = synth(Arch::Qwen3moe) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    for (sandbox, filtered) in [("auto", "2"), ("off", "0")] {
        let worker = Worker::start(&model, &["--layers", "0-1", "--sandbox", sandbox]);
        let (_, told) = head.says(&["--workers", &worker.address, "--pair-code", &worker.code]);
        assert!(told.contains("rows in"), "{told}");
        let status = std::fs::read_to_string(format!("/proc/{}/status", worker.process.id()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap();
        assert_eq!(line.trim(), filtered, "--sandbox {sandbox}");
    }
}

#[test]
fn workers_that_offer_everything_divide_it() {
    let Some(model) = synth(Arch::Qwen3moe) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    let (alone, _) = head.says(&[]);
    let (spec, _) = motley_model::ModelSpec::open(&model).unwrap();
    let slot_bytes = motley_plan::needs::ModelNeeds::of(&spec).slot_bytes;
    // Room for a layer and a quarter of the three: each is needed.
    let room = ((256 << 20) + 20 * slot_bytes).to_string();
    let workers = [(); 2].map(|()| Worker::start(&model, &["--memory", &room]));
    for worker in &workers {
        head.says(&["--workers", &worker.address, "--pair-code", &worker.code]);
    }
    let both = format!("{},{}", workers[0].address, workers[1].address);
    let shape = motley_plan::budget::SessionShape { output_tokens: 1, ..support::SHAPE };
    let memory = motley_plan::budget::Budget::of(&spec, shape).smallest_bytes().to_string();
    let small = ["--memory", &memory, "--context", "1024", "--chunk", "512"];
    let (text, told) = head.says(&[&["--workers", &both][..], &small].concat());
    assert_eq!(text, alone);
    // Their experts are all but those that stay at home, none of them twice.
    let line = told.lines().find(|line| line.contains(": workers: ")).unwrap();
    let counts: Vec<u32> = line
        .split('(')
        .skip(1)
        .map(|part| part.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let all = spec.experts * spec.expert_layers().count() as u32;
    assert!(counts.len() == 2 && counts.iter().all(|count| *count > 0), "{told}");
    assert!(counts.iter().sum::<u32>() <= all, "{told}");
    assert_eq!(told.matches(" rows in ").count(), 2, "{told}");
    assert!(!told.contains(" 0 rows in "), "{told}");
}

#[test]
fn a_killed_worker_costs_nothing_but_time() {
    let Some(model) = synth(Arch::Qwen3moe) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    let tokens = "400";
    let alone = head.command(tokens, &[]).output().unwrap().stdout;
    let mut worker = Worker::start(&model, &["--layers", "0-2"]);
    let flags = ["--workers", &worker.address, "--pair-code", &worker.code];
    let mut child =
        head.command(tokens, &flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    // It has loaded, and begins to answer.
    let begun = stderr.by_ref().map_while(Result::ok).any(|line| line.contains(": workers: "));
    assert!(begun);
    std::thread::sleep(Duration::from_millis(150));
    worker.process.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let told: Vec<String> = stderr.map_while(Result::ok).collect();
    assert!(output.status.success(), "{told:?}");
    assert_eq!(output.stdout, alone);
    let lost = told.iter().find(|line| line.contains(": worker ")).unwrap();
    assert!(lost.contains("; lost: "), "{lost}");
}

#[test]
fn a_server_has_workers_and_says_what_they_do() {
    let Some(model) = synth(Arch::Qwen3moe) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    let mut worker = Worker::start(&model, &["--layers", "0-2"]);
    let body = json!({ "prompt": PROMPT, "max_tokens": 24, "temperature": 0 });
    let text = |server: &Server| {
        let (status, answer) = server.post("/v1/completions", &body);
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["text"].as_str().unwrap().to_owned()
    };
    let flags = ["--exact", "--trust-file"];
    let alone = text(&Server::start_keeping(head.state.path(), &model, &flags));
    let workers = ["--workers", &worker.address, "--pair-code", &worker.code];
    let server = Server::start_keeping(head.state.path(), &model, &[&flags[..], &workers].concat());
    assert_eq!(text(&server), alone);
    let (_, metrics) = server.get("/metrics");
    let figure = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(figure("motley_worker_rows_total{") > 0.0, "{metrics}");
    assert_eq!(figure("motley_worker_answering{"), 1.0);
    // What the worker says itself, to who is known.
    let known = motley_in(head.state.path(), &["workers", "--json"]);
    let said: Value = serde_json::from_slice(&known.stdout).unwrap();
    assert!(said[0]["serves"] == true && said[0]["rows"].as_u64() > Some(0), "{said}");
    let paths = ["plan", model.to_str().unwrap(), "--json", "--workers", &worker.address];
    let plan = motley_in(head.state.path(), &paths);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    let with = plan["workers"]["with_workers"].as_f64();
    assert!(with > Some(0.0) && plan["plan"].is_object(), "{plan}");

    worker.process.kill().unwrap();
    assert_eq!(text(&server), alone);
    let (_, page) = server.get("/motley/dashboard");
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["workers"][0]["answers"], false, "{page}");
    let known = motley_in(head.state.path(), &["workers"]);
    assert!(known.status.success(), "{}", String::from_utf8_lossy(&known.stderr));
}

#[test]
fn another_model_is_refused() {
    let (Some(model), Some(other)) = (synth(Arch::Qwen3moe), synth(Arch::Olmoe)) else { return };
    let head = Head { state: tempfile::tempdir().unwrap(), model: &model };
    let worker = Worker::start(&other, &[]);
    let refused = head.run(&["--workers", &worker.address, "--pair-code", &worker.code]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("has another model"), "{said}");
}
