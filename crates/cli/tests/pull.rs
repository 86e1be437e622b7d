//! `motley pull` and the names of models, against a local hub: the plan before the weights, killed
//! and resumed, a full disk, what `run` makes of a name, and the hub's own package beside it.
//!
//! `MOTLEY_PULL_PART_MB=50` kills and resumes a model of 1 GB; CI takes one of 20 MB.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

mod support;

use motley_plan::Decision;
use motley_testkit::hub::{Asked, sha256};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::hub::{NAME, PARTS, REPO, World};
use support::server::count;

/// Times a download is killed.
const KILLS: u64 = 5;
/// Longest a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_plan_is_printed_before_the_first_byte_of_weights() {
    let world = World::split(1);
    world.hub.behave(|behaviour| behaviour.holds_weights = true);
    let mut child = world
        .command(&["pull", NAME])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("motley starts");
    // No byte of weights leaves the hub before this has been read.
    let mut page = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while !page.contains("Disk") {
        page += &(lines.next().expect("the whole plan").expect("text") + "\n");
    }
    for words in [NAME, "Runs here", "yes, one memory", "Expected", "in 20 parts", "free in"] {
        assert!(page.contains(words), "{words} in\n{page}");
    }
    assert_eq!(world.bytes_here(), 0);
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let log = world.hub.log();
    let first = log.iter().position(Asked::is_for_weights).unwrap_or(log.len());
    let headers = log[..first].iter().filter(|asked| asked.path.starts_with("/bytes/")).count();
    assert!(headers >= PARTS as usize, "every header before any weights: {log:?}");

    world.hub.behave(|behaviour| behaviour.holds_weights = false);
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert!(status.success(), "{said}");
    // In a pipe: one line at the start, one at the end.
    let said: Vec<&str> = said.lines().collect();
    assert!(said.len() == 2 && said[0].contains("fetching"), "{said:?}");
    assert!(said[1].contains("every checksum is right"), "{said:?}");
    assert_eq!(world.check_blobs(), PARTS as usize);
}

#[test]
fn killed_five_times_it_goes_on_where_it_was() {
    let world = World::split(count("MOTLEY_PULL_PART_MB", 1));
    let total = world.model_bytes();
    // Four connections: some four seconds in all.
    world.hub.behave(|behaviour| behaviour.bytes_per_s = Some(total / 16));
    let mut fetched = 0;
    for kill in 1..=KILLS {
        let mut child = quiet(&world);
        let wanted = total * kill / (KILLS + 1);
        wait_until("bytes come", || world.bytes_here() >= wanted);
        child.kill().expect("SIGKILL");
        child.wait().expect("it ended");
        let (here, whole) = (world.bytes_here(), world.check_blobs());
        println!("kill {kill}: {here} of {total} bytes here, {whole} of {PARTS} parts whole");
        assert!(here >= fetched, "nothing is lost: {here} after {fetched}");
        fetched = here;
        let listed = world.json(&["list"]);
        assert_eq!(listed[0]["complete"], false, "{listed}");
    }
    world.hub.behave(|behaviour| behaviour.bytes_per_s = None);
    let report = world.json(&["pull", NAME]);
    let came = report["fetched"]["bytes"].as_u64().expect("bytes");
    println!("resumed: {came} bytes came, {fetched} were here");
    assert_eq!(came + fetched, total, "every byte once");
    assert_eq!(world.check_blobs(), PARTS as usize);
    assert_eq!(world.blobs().1, Vec::<std::path::PathBuf>::new());
    assert!(same_as_at_the_hub(&world, Path::new(report["fetched"]["path"].as_str().unwrap())));
}

fn quiet(world: &World) -> Child {
    let mut command = world.command(&["pull", NAME]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("motley starts")
}

/// Part by part, through the links.
fn same_as_at_the_hub(world: &World, first: &Path) -> bool {
    (1..=PARTS).all(|number| {
        let end = format!("{number:05}-of-{PARTS:05}.gguf");
        let ours = first.with_file_name(format!("small-Q4_0-{end}"));
        let theirs = world.model.with_file_name(format!("model-{end}"));
        sha256(&ours).expect("ours") == sha256(&theirs).expect("theirs")
    })
}

#[test]
fn a_dry_run_fetches_headers_and_keeps_nothing() {
    let world = World::split(1);
    let report = world.json(&["pull", REPO, "--dry-run"]);
    assert_eq!((&report["name"], &report["runs_here"]), (&NAME.into(), &true.into()));
    assert_eq!(report["files"].as_array().map(Vec::len), Some(PARTS as usize));
    assert!(report["plan"]["budget"].is_object() && report["fetched"].is_null(), "{report}");
    assert!(!world.hub.log().iter().any(Asked::is_for_weights));
    assert!(!world.cached().exists());
    let shown = world.json(&["show", NAME]);
    assert_eq!((&shown["architecture"], &shown["downloaded"]), (&"qwen3moe".into(), &false.into()));
    assert!(!world.hub.log().iter().any(Asked::is_for_weights));
}

#[test]
fn the_plan_names_what_would_fit_better() {
    let world = World::split(1);
    let small = World::small();
    world.hub.add_model(REPO, "small-Q2_K", &small.model).expect("a model");
    let dry = |more: &[&str]| {
        world.json(&[&["pull", NAME, "--dry-run", "--context", "4096"], more].concat())
    };
    let plan = Decision::from_json(&dry(&[])["plan"].to_string()).expect("a plan");
    // One byte too little for every expert.
    let memory = (plan.budget.largest_sensible_bytes() - 1).to_string();
    let report = dry(&["--memory", &memory]);
    assert_eq!(report["plan"]["placement"]["regime"], "beyond-ram", "{report}");
    let better = &report["fits_better"];
    assert_eq!((&better["quantisation"], &better["smaller"]), (&"Q2_K".into(), &true.into()));
    let page = text(
        &world
            .motley(&["pull", NAME, "--dry-run", "--context", "4096", "--memory", &memory])
            .stdout,
    );
    assert!(page.contains("Fits better      Q2_K ("), "{page}");
    // Without a quantisation the usual one is taken, and said to be.
    let page = text(&world.motley(&["pull", REPO, "--dry-run"]).stdout);
    assert!(page.contains("Q4_0: the usual one"), "{page}");
}

#[test]
fn run_fetches_a_name_and_answers_and_then_needs_no_network() {
    let world = World::small();
    let refused = world.refused(&["plan", NAME]);
    assert!(refused.contains(&format!("motley pull {NAME}")), "{refused}");

    let run = ["run", NAME, "-p", "the", "-n", "4", "--temperature", "0", "--no-record"];
    let output = world.motley(&run);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!output.stdout.is_empty() && said.contains("Runs here"), "{said}");
    let asked = world.hub.log().len();

    let again = world.motley(&run);
    assert_eq!((again.stdout, again.status.code()), (output.stdout, Some(0)));
    // The repository alone means what is here of it.
    let plan = world.json(&["plan", REPO]);
    assert!(plan["model"]["total_bytes"].as_u64() > Some(1 << 20));
    let path = world.json(&["inspect", NAME])["files"][0]["path"].as_str().unwrap().to_owned();
    assert!(Path::new(&path).starts_with(world.cached()), "{path}");
    assert_eq!(world.hub.log().len(), asked, "no network for what is here");

    let strict = world.motley(&[&run[..], &["--sandbox", "require"]].concat());
    let said = text(&strict.stderr);
    assert!(strict.status.success() || said.contains("--sandbox require asks"), "{said}");
}

#[test]
fn what_is_here_is_listed_shown_and_removed() {
    let world = World::small();
    world.json(&["pull", NAME]);
    let listed = world.json(&["list"]);
    let row = |key: &str| listed[0][key].clone();
    assert_eq!((row("name"), row("complete"), row("parts")), (NAME.into(), true.into(), 1.into()));
    let page = text(&world.motley(&["list"]).stdout);
    assert!(page.contains(NAME) && page.contains("complete"), "{page}");
    let shown = world.json(&["show", NAME]);
    assert_eq!(shown["downloaded"], true);

    let refused = world.refused(&["rm", NAME]);
    assert!(refused.contains("--yes") && refused.contains("MiB"), "{refused}");
    let removed = world.json(&["rm", NAME, "--yes"]);
    assert_eq!(removed["freed_bytes"], row("bytes"));
    assert!(!world.cached().exists());
    assert_eq!(world.json(&["list"]), Value::Array(Vec::new()));
    assert!(world.refused(&["rm", NAME, "--yes"]).contains("not downloaded"));
}

#[test]
fn errors_say_what_is_accepted_and_what_is_there() {
    let world = World::small();
    let said = world.refused(&["run", "qwen3", "-p", "x"]);
    assert!(said.contains("no such file") && said.contains("owner/repo:QUANT"), "{said}");
    let said = world.refused(&["pull", "owner/Small-GGUF:Q6_K"]);
    assert!(said.contains("Q4_0 ("), "{said}");
    let said = world.refused(&["pull", "owner/None"]);
    assert!(said.contains("404"), "{said}");
    world.hub.behave(|behaviour| behaviour.damages = Some("small-Q4_0.gguf".to_owned()));
    let said = world.refused(&["run", NAME, "-p", "x"]);
    assert!(said.contains("checksum") && said.contains("small-Q4_0.gguf"), "{said}");
    assert_eq!((world.check_blobs(), world.bytes_here()), (0, 0));
}

#[test]
fn a_token_reaches_the_endpoint_alone() {
    let world = World::small();
    world.hub.behave(|behaviour| behaviour.wants_token = Some("hf_secret".to_owned()));
    assert!(world.refused(&["pull", NAME]).contains("HF_TOKEN"));
    let output = world.command(&["pull", NAME]).env("HF_TOKEN", "hf_secret").output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && !said.contains("hf_secret"), "{said}");
    assert!(world.hub.log().iter().all(|asked| asked.endpoint || asked.token.is_none()));
}

/// In a mount of its own, or, where none can be made, under a limit on the size of files.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_before_and_survived_between() {
    let world = World::split(1);
    let disk = world.folder.path().join("disk");
    std::fs::create_dir_all(&disk).expect("a folder");
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
        let own = if root { "-m" } else { "-rm" };
        world.environment(&mut command).args([own, "sh", "-ec", script]);
        command.env("HF_HUB_CACHE", &disk).env("DISK", &disk).env("NAME", NAME);
        command
            .env("MOTLEY", env!("CARGO_BIN_EXE_motley"))
            .env("GO", world.folder.path().join("go"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mounts = alone("mount -t tmpfs -o size=64m none $DISK").status();
    if !mounts.is_ok_and(|status| status.success()) {
        return a_limit_on_file_sizes(&world);
    }
    let small = alone("mount -t tmpfs -o size=4m none $DISK; exec $MOTLEY pull $NAME").output();
    let said = text(&small.expect("a shell").stderr);
    assert!(
        said.contains("bytes") && said.contains("are free") && said.contains("HF_HUB_CACHE"),
        "{said}"
    );
    assert!(!world.hub.log().iter().any(Asked::is_for_weights), "refused before");

    // There is room when it begins; then somebody else takes it.
    world.hub.behave(|behaviour| behaviour.holds_weights = true);
    let script = "mount -t tmpfs -o size=48m none $DISK
        $MOTLEY pull $NAME & pull=$!
        while [ ! -e $GO ]; do sleep 0.05; done
        head -c 44m /dev/zero > $DISK/others
        touch $GO.filled
        wait $pull && exit 7
        rm $DISK/others
        $MOTLEY pull $NAME --json";
    let child = alone(script).spawn().expect("a shell");
    let go = world.folder.path().join("go");
    wait_until("weights are asked for", || world.hub.log().iter().any(Asked::is_for_weights));
    std::fs::write(&go, "").expect("a file");
    wait_until("the disk is full", || go.with_file_name("go.filled").exists());
    world.hub.behave(|behaviour| behaviour.holds_weights = false);
    let output = child.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the disk is full") && said.contains("HF_HUB_CACHE"), "{said}");
    let all = text(&output.stdout);
    let report: Value = serde_json::from_str(&all[all.find('{').expect("JSON")..]).expect("JSON");
    let came = report["fetched"]["bytes"].as_u64().expect("bytes");
    assert!(came < world.model_bytes(), "what came before was kept: {came}");
}

#[cfg(target_os = "linux")]
fn a_limit_on_file_sizes(world: &World) {
    eprintln!("no tmpfs can be mounted here: files are limited to 512 KiB in its place");
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 1024; exec $MOTLEY pull $NAME";
    world.environment(&mut command).args(["-ec", script]);
    let command = command.env("NAME", NAME).env("MOTLEY", env!("CARGO_BIN_EXE_motley"));
    let output = command.output().expect("a shell");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
    world.check_blobs();
    world.json(&["pull", NAME]);
    assert_eq!(world.check_blobs(), PARTS as usize);
}

#[test]
fn the_hubs_own_package_finds_our_files_and_we_find_its() {
    let packages = ["huggingface_hub==2.4.0"];
    let Some(python) = support::python("hub-venv", &packages, "huggingface_hub") else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hub_client.py");
    let file = "small-Q4_0.gguf";
    let client = |world: &World, what: &str| {
        let mut command = Command::new(&python);
        world.environment(&mut command).arg(&script).args([what, REPO, file]);
        let output = command.output().expect("python starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let ours = World::small();
    let path = ours.json(&["pull", NAME])["fetched"]["path"].as_str().unwrap().to_owned();
    assert_eq!(client(&ours, "find"), path);

    let theirs = World::small();
    let path = client(&theirs, "fetch");
    let listed = theirs.json(&["list"]);
    assert_eq!((&listed[0]["path"], &listed[0]["complete"]), (&path.into(), &true.into()));
    // Nothing comes again.
    assert_eq!(theirs.json(&["pull", NAME])["fetched"]["bytes"], 0);
}
