//! The `motley` command: reads what the user typed, calls one command, prints an
//! error once.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it may read the clock")]

mod api_key;
mod args;
mod check_file;
mod commands;
mod config;
mod files;
mod known;
mod last;
mod load;
mod log;
mod model_name;
mod npu;
mod otlp;
mod page;
mod prices;
mod pulling;
mod recorder;
mod sandbox;
mod state;
mod system;
mod terminal;
mod timeline;
mod version;
mod ways;
mod workers;

use args::{Command, Motley};
use config::Typed;
use console::Term;
use std::io::IsTerminal;
use std::process::ExitCode;
use terminal::{in_words, note};

fn main() -> ExitCode {
    let Typed { motley, origins } = match config::parse() {
        Ok(typed) => typed,
        Err(error) => {
            note(&in_words(&error));
            return ExitCode::FAILURE;
        }
    };
    log::start(motley.global.verbose, matches!(motley.command, Command::Serve(_)));
    let not_typed = config::said(&origins);
    tracing::info!("{}", not_typed.as_deref().unwrap_or("all flags as typed"));
    match carry_out(motley) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note(&in_words(&error));
            not_typed.iter().for_each(|said| note(said));
            ExitCode::FAILURE
        }
    }
}

fn carry_out(mut motley: Motley) -> anyhow::Result<()> {
    model_name::resolve(&mut motley.command, &motley.global, columns())?;
    match motley.command {
        Command::Run(run) => commands::run::run(&motley.global, &run),
        Command::Serve(serve) => commands::serve::run(&motley.global, &serve),
        Command::Pull(pull) => commands::pull::run(&motley.global, &pull, columns()),
        Command::List => commands::list::run(&motley.global, columns()),
        Command::Rm(rm) => commands::rm::run(&motley.global, &rm),
        Command::Show(show) => commands::show::run(&motley.global, &show, columns()),
        Command::Inspect(inspect) => {
            commands::inspect::run(&inspect.model, motley.global.json, inspect.context, columns())
        }
        Command::Plan(plan) => commands::plan::run(&motley.global, &plan, columns()),
        Command::Predict(args) => commands::predict::run(&motley.global, &args, columns()),
        Command::Tune(tune) => commands::tune::run(&motley.global, &tune, columns()),
        Command::Explain(explain) => commands::explain::run(&motley.global, &explain, columns()),
        Command::Doctor(doctor) => commands::doctor::run(&motley.global, &doctor, columns()),
        Command::Calibrate(args) => commands::calibrate::run(&motley.global, &args, columns()),
        Command::Bench(bench) => commands::bench::run(&motley.global, &bench),
        Command::Eval(eval) => commands::eval::run(&motley.global, &eval, columns()),
        Command::Sim(sim) => commands::sim::run(&motley.global, &sim, columns()),
        Command::Reproduce(reproduce) => {
            commands::reproduce::run(&motley.global, &reproduce, columns())
        }
        Command::Trace(trace) => commands::trace::run(&motley.global, &trace, columns()),
        Command::Config(args) => commands::config::run(&motley.global, &args, columns()),
        Command::Env(env) => commands::env::run(&motley.global, &env),
        Command::Service(service) => commands::service::run(&motley.global, &service),
        Command::Bug => commands::bug::run(&motley.global),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Worker(worker) => commands::worker::run(&motley.global, &worker),
        Command::Workers(asked) => commands::known_workers::run(&motley.global, &asked, columns()),
        Command::MeasureJob => commands::measure_job::run(),
        Command::CheckFile => commands::check_file::run(),
        Command::CheckHost { ggml } => commands::env::check(&ggml),
        Command::Openapi => commands::openapi::run(),
    }
}

/// Columns of the terminal on stdout; `None` in a pipe.
fn columns() -> Option<u16> {
    std::io::stdout().is_terminal().then(|| Term::stdout().size().1)
}

/// `motley … | head` is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
