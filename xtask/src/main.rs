//! The command `cargo xtask`: calls the library and prints what it did.
#![forbid(unsafe_code)]

mod arguments;

use anyhow::Result;
use arguments::{
    Arguments, CappedArguments, ChaosArguments, CheckArguments, Command, FuzzArguments,
    HostileArguments, LoadArguments, MutateArguments, SoakServeArguments, SynthArguments,
    UpcycleArguments,
};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::output::{Progress, WrittenModel};
use motley_testkit::synth::file::first_path;
use motley_testkit::{cache, smollm2, synth, upcycle};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use xtask::servers::Running;
use xtask::{
    capped, check, dist, docs, dropin, fuzz, hostile, hosts, load, mutate, targets, tidy,
    workspace_root,
};

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Tidy => return run_tidy(),
        Command::Check(arguments) => return run_check(&arguments),
        Command::Seeds { options } => return run_seeds(&options),
        Command::Synth(arguments) => run_synth(&arguments)?,
        Command::Upcycle(arguments) => run_upcycle(&arguments)?,
        Command::Load(arguments) => return run_load(&arguments),
        Command::Hostile(arguments) => return run_hostile(&arguments),
        Command::Capped(arguments) => run_capped(&arguments)?,
        Command::Sweep(arguments) => capped::sweep(&arguments)?,
        Command::Versus(asked) => capped::versus(&asked, &mut |line| println!("{line}"))?,
        Command::Soak(arguments) => println!("{:#?}", capped::soak(&arguments.soak()?)?),
        Command::SoakServe(arguments) => soak_serve(&arguments)?,
        Command::Chaos(arguments) => run_chaos(&arguments)?,
        Command::Hosts(asked) => hosts::run(&asked, &mut |line| println!("{line}"))?,
        Command::Mutate(arguments) => return run_mutate(&arguments),
        Command::Fuzz(arguments) => return run_fuzz(&arguments),
        Command::TakeMemory { bytes, file } => capped::take_memory(bytes, &file)?,
        Command::Docs(asked) => return run_docs(&asked),
        Command::Dropin => println!("{}", dropin::build()?.display()),
        Command::DropinPairs(asked) => {
            dropin::pairs::compare(&asked, &dropin::build()?, &mut |line| println!("{line}"))?;
        }
        Command::DropinHost(asked) => {
            dropin::table::run(&asked, &dropin::build()?, &mut |line| println!("{line}"))?;
        }
        Command::Dist(asked) => run_dist(&asked)?,
        Command::DistTest(asked) => return run_dist_test(&asked),
        Command::DistRecord(asked) => print!("{}", dist::trial::recording::record(&asked)?),
        Command::Targets(asked) => return run_targets(&asked),
        Command::Smollm2 { force } => println!("{}", smollm2::fetch(force)?.display()),
    }
    Ok(ExitCode::SUCCESS)
}

fn run_tidy() -> Result<ExitCode> {
    let tree = tidy::Tree::of_git(workspace_root())?;
    let findings = tidy::check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    for known in tidy::circles::exempt(&tree) {
        println!("known: {known}");
    }
    println!("tidy: {} findings in {} files", findings.len(), tree.files().len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails when a check or a test did.
fn run_targets(asked: &targets::Targets) -> Result<ExitCode> {
    let report = targets::targets(asked, &mut |line| eprintln!("{line}"))?;
    if let Some(path) = &asked.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    print!("{}", report.table());
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails when a page is wrong, or out of date.
fn run_docs(asked: &docs::Docs) -> Result<ExitCode> {
    let written = docs::docs(asked)?;
    written.pages.iter().for_each(|page| eprintln!("written: {page}"));
    written.findings.iter().for_each(|finding| println!("{finding}"));
    if let Some(book) = &written.book {
        println!("{}", book.display());
    }
    println!("docs: {} findings", written.findings.len());
    Ok(if written.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails when the checker found something, or ran nothing.
fn run_check(arguments: &CheckArguments) -> Result<ExitCode> {
    let report = check::check(arguments.checker, &mut |line| println!("{line}"))?;
    if let Some(path) = &arguments.json {
        report.write_into(path, arguments.checker.name())?;
    }
    report.findings.iter().for_each(|finding| eprintln!("finding: {finding}"));
    eprintln!("{}", report.summary());
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A program of its own: this one does not link the engine.
fn run_seeds(options: &[String]) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["run", "--release", "--quiet", "-p", "motley-faultsim", "--"])
        .args(options)
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_hostile(arguments: &HostileArguments) -> Result<ExitCode> {
    let report = hostile::run(&arguments.hostile()?, &mut |line| eprintln!("{line}"))?;
    let written = serde_json::to_string_pretty(&report)?;
    if let Some(out) = &arguments.out {
        std::fs::write(out, format!("{written}\n"))?;
    }
    if arguments.json {
        println!("{written}");
    }
    let faults = report.faults();
    faults.iter().for_each(|fault| eprintln!("fault: {fault}"));
    eprintln!(
        "{} hostile requests, {} faults; p99 of the honest client {:.2} × alone; {} MiB more at most",
        report.requests,
        faults.len(),
        report.slower(),
        report.mixed.grown_kib >> 10
    );
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_dist(asked: &dist::Dist) -> Result<()> {
    for artefact in dist::dist(asked, &mut |step| eprintln!("dist: {step}"))? {
        println!("{}", artefact.display());
    }
    Ok(())
}

/// Fails when a package does not install or run somewhere.
fn run_dist_test(asked: &dist::trial::Trial) -> Result<ExitCode> {
    let found = dist::trial::trial(asked, &mut |step| eprintln!("dist-test: {step}"))?;
    print!("{}", found.table());
    if let Some(path) = &asked.json {
        std::fs::write(path, serde_json::to_string_pretty(&found)? + "\n")?;
    }
    let faults = found.faults();
    faults.iter().for_each(|fault| eprintln!("fault: {fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_capped(arguments: &CappedArguments) -> Result<()> {
    let runs = capped::run(&arguments.comparison()?, &arguments.out)?;
    println!("{}", capped::table(&runs));
    Ok(())
}

fn run_synth(arguments: &SynthArguments) -> Result<()> {
    let request = arguments.request()?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => cache::models_folder()?.join(request.file_name()),
    };
    let path = first_path(&out, request.shards);
    if path.exists() && !arguments.force {
        return print_existing(&path);
    }
    let source = match &arguments.tokenizer {
        Some(path) => path.clone(),
        None => smollm2::fetch(false)?,
    };
    let tokenizer = Tokenizer::read(&source)?;
    let bar = Bar::new();
    let written =
        synth::generate(&request, &tokenizer, &out, &mut |progress| bar.update(progress))?;
    let synth::Shape { layers, experts, topk, .. } = request.shape;
    let what = format!(
        "{} {}: {layers} layers, {experts} experts (top-{topk})",
        request.arch, request.quant
    );
    print_written(&what, &written, bar.finish());
    Ok(())
}

fn run_upcycle(arguments: &UpcycleArguments) -> Result<()> {
    let request = arguments.request();
    let dense = match &arguments.dense {
        Some(path) => path.clone(),
        None => smollm2::fetch(false)?,
    };
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => cache::models_folder()?.join(request.file_name(&dense)),
    };
    if out.exists() && !arguments.force {
        return print_existing(&out);
    }
    let bar = Bar::new();
    let written = upcycle::upcycle(&dense, &request, &out, &mut |progress| bar.update(progress))?;
    let upcycle::Request { experts, topk, .. } = request;
    print_written(&format!("upcycled: {experts} experts (top-{topk})"), &written, bar.finish());
    Ok(())
}

fn run_load(arguments: &LoadArguments) -> Result<ExitCode> {
    let mixed_up = match arguments.compares() {
        true => compare_servers(arguments)?,
        false => load_one(arguments)?,
    };
    Ok(if mixed_up == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks a server that runs; answers that were not their own.
fn load_one(arguments: &LoadArguments) -> Result<usize> {
    let rounds = load_rounds(arguments, &arguments.target()?)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rounds)?);
    }
    Ok(rounds.iter().map(|round| round.mixed_up).sum())
}

fn load_rounds(arguments: &LoadArguments, target: &load::Target) -> Result<Vec<load::Figures>> {
    let mut rounds = Vec::new();
    let print = |line: &str| if arguments.json { eprintln!("{line}") } else { println!("{line}") };
    print(load::HEADER);
    for &streams in &arguments.streams {
        let figures = load::round(target, streams)?.figures();
        print(&figures.row());
        rounds.push(figures);
    }
    Ok(rounds)
}

/// Starts servers and asks them in turn; answers of our exact server that were not their own.
fn compare_servers(arguments: &LoadArguments) -> Result<usize> {
    let versus = arguments.versus()?;
    let names: Vec<String> = versus.contenders.iter().map(|one| one.name.clone()).collect();
    let (turns, said) = load::versus(&versus, &mut print_turn);
    let checked = if arguments.check { Some(check_exact(arguments)) } else { None };
    if arguments.json {
        let mut report = load::report(&turns, &names, &said);
        report["exact"] = serde_json::to_value(
            checked.as_ref().map(|rounds| rounds.as_ref().map_err(|error| format!("{error:#}"))),
        )?;
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for (name, said) in names.iter().zip(&said) {
            println!("{name}: {said}");
        }
        println!("\n{}", load::table(&turns, &names));
    }
    let rounds = checked.transpose()?.unwrap_or_default();
    Ok(rounds.iter().map(|round| round.mixed_up).sum())
}

/// Every answer of `motley serve --exact` under load against the one it gives alone.
fn check_exact(arguments: &LoadArguments) -> Result<Vec<load::Figures>> {
    eprintln!("exact: every answer alone, then all together");
    let server = Running::start(arguments.ours(true)?.start())?;
    load_rounds(arguments, &arguments.target_at(&server.address))
}

fn print_turn(turn: &load::Turn) {
    let load::Turn { server, round, streams, load, others_cpu_s, figures, failed } = turn;
    let outcome = match (figures, failed) {
        (Some(figures), _) => format!(
            "{:.1} tokens/s, first token {:.0} ms",
            figures.tokens_per_s, figures.ttft_ms_p50
        ),
        (None, why) => format!("failed: {}", why.as_deref().unwrap_or_default()),
    };
    eprintln!(
        "round {round}, {streams} streams, {server}: {outcome} (load {load:.2}, others {others_cpu_s:.2} s)"
    );
}

fn soak_serve(arguments: &SoakServeArguments) -> Result<()> {
    let soaked = capped::serve_soak(&arguments.soak()?, &mut |line| eprintln!("{line}"))?;
    println!("{}", serde_json::to_string_pretty(&soaked)?);
    soaked.verdict()
}

#[cfg(target_os = "linux")]
fn run_chaos(arguments: &ChaosArguments) -> Result<()> {
    let endured = xtask::chaos::endure(&arguments.chaos()?, &mut |line| eprintln!("{line}"))?;
    let written = serde_json::to_string_pretty(&endured)?;
    println!("{written}");
    if let Some(out) = &arguments.out {
        std::fs::write(out, written + "\n")?;
    }
    endured.verdict()
}

#[cfg(not(target_os = "linux"))]
fn run_chaos(_: &ChaosArguments) -> Result<()> {
    anyhow::bail!("the failing disk needs Linux and FUSE")
}

/// Fails when a mutation ended the program.
fn run_mutate(arguments: &MutateArguments) -> Result<ExitCode> {
    let report = mutate::mutate(&arguments.mutations()?, &|line| eprintln!("{line}"))?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    println!("{}", report.summary());
    Ok(if report.bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fails when an input did.
fn run_fuzz(arguments: &FuzzArguments) -> Result<ExitCode> {
    let asked = arguments.fuzz()?;
    if let (Some(input), [target]) = (&arguments.replay, &asked.targets[..]) {
        let status = fuzz::replay(&asked, target, input)?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let report = fuzz::fuzz(&asked, &|line| eprintln!("{line}"))?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    for (target, crash) in report.crashes() {
        println!("{target} failed: {}\n  replay: {}", crash.said.join("\n  "), crash.replay);
    }
    let sound = report.crashes().next().is_none();
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One line for a person on stderr, the path alone on stdout.
fn print_written(what: &str, written: &WrittenModel, seconds: f64) {
    let megabytes = written.bytes as f64 / 1e6;
    eprintln!("{what}, {megabytes:.0} MB in {seconds:.1} s ({:.0} MB/s)", megabytes / seconds);
    println!("{}", written.path.display());
}

fn print_existing(path: &Path) -> Result<()> {
    eprintln!("already there (--force writes it anew)");
    println!("{}", path.display());
    Ok(())
}

/// A progress bar on a terminal, nothing elsewhere; and the clock.
struct Bar {
    bar: ProgressBar,
    start: Instant,
}

impl Bar {
    #[expect(clippy::disallowed_methods, reason = "a command prints how long it took")]
    fn new() -> Self {
        let style = ProgressStyle::with_template(
            "{bar:40} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}",
        );
        let bar = ProgressBar::no_length().with_style(style.expect("a valid template"));
        Self { bar, start: Instant::now() }
    }

    fn update(&self, progress: Progress) {
        match progress {
            Progress::Total(bytes) => self.bar.set_length(bytes),
            Progress::More(bytes) => self.bar.inc(bytes),
        }
    }

    /// Clears the bar; seconds since its start.
    fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.start.elapsed().as_secs_f64()
    }
}
