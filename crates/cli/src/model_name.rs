//! Names of models become paths, once, before a command begins: `run` and `serve` fetch what is not
//! here, the others say how to. Everything after this knows paths only.

use crate::args::{Command, Global, TraceCommand};
use crate::page::width_of;
use crate::pulling::{Announcement, Found, Hub};
use crate::terminal::{note, print_aside};
use anyhow::{Result, bail};
use motley_engine::machine_memory;
use motley_hub::{Kept, KeptError, ModelName, find};
use motley_plan::quantisation::{Offered, choose};
use motley_plan::{Asked, Outputs};
use std::path::{Path, PathBuf};

/// Puts paths in place of names in what was typed.
pub(crate) fn resolve(command: &mut Command, global: &Global, columns: Option<u16>) -> Result<()> {
    let fetches = match command {
        Command::Run(run) => Some(run.load.asked(run.outputs())),
        Command::Serve(serve) => Some(serve.loading().asked(Outputs::Streams(serve.streams))),
        _ => None,
    };
    for model in models(command) {
        let name = ModelName::parse(model)?;
        if matches!(name, ModelName::Local(_)) {
            continue;
        }
        let hub = Hub::of_environment()?;
        *model = match (find(&hub.settings, &name), &fetches) {
            (Ok(kept), _) => only_one(model, kept)?,
            (Err(KeptError::NotHere { .. }), Some(asked)) => {
                fetched(&hub, &name, asked, global, columns)?
            }
            (Err(KeptError::NotHere { .. }), None) => {
                let typed = model.display();
                bail!("{typed}: not downloaded; `motley pull {typed}` fetches it")
            }
            (Err(error), _) => return Err(error.into()),
        };
    }
    Ok(())
}

/// Every place of a command that takes a model.
fn models(command: &mut Command) -> Vec<&mut PathBuf> {
    match command {
        Command::Run(run) => [&mut run.model].into_iter().chain(&mut run.draft).collect(),
        Command::Serve(serve) => serve.models.iter_mut().collect(),
        Command::Inspect(inspect) => vec![&mut inspect.model],
        Command::Plan(plan) => vec![&mut plan.model],
        Command::Predict(predict) => predict.models.iter_mut().collect(),
        Command::Tune(tune) => vec![&mut tune.model],
        Command::Calibrate(calibrate) => calibrate.model.as_mut().into_iter().collect(),
        Command::Bench(bench) => vec![&mut bench.model],
        Command::Worker(worker) => vec![&mut worker.model],
        Command::Eval(eval) => vec![&mut eval.model],
        Command::Sim(sim) => sim.model.as_mut().into_iter().collect(),
        Command::Trace(TraceCommand::Record(record)) => vec![&mut record.model],
        // They take names, or no model at all.
        Command::Pull(_)
        | Command::Rm(_)
        | Command::Show(_)
        | Command::List
        | Command::Explain(_)
        | Command::Doctor(_)
        | Command::Reproduce(_)
        | Command::Trace(_)
        | Command::Config(_)
        | Command::Service(_)
        | Command::Bug
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Openapi
        | Command::MeasureJob
        | Command::CheckFile
        | Command::CheckHost { .. }
        | Command::Workers(_)
        | Command::Env(_) => Vec::new(),
    }
}

/// Of several that are here, the one that suits the machine; says which.
pub(crate) fn only_one(typed: &Path, mut kept: Vec<Kept>) -> Result<PathBuf> {
    if kept.len() > 1 {
        let offered: Vec<Offered<'_>> =
            kept.iter().map(|kept| Offered { name: &kept.label, bytes: kept.bytes }).collect();
        let choice = choose(&offered, machine_memory().map(|memory| memory.room_bytes()));
        if let Some(choice) = choice {
            let of = kept.len();
            kept = vec![kept.swap_remove(choice.index)];
            let (typed, label) = (typed.display(), &kept[0].label);
            note(&format!("{typed}: {label} of the {of} that are here: {}", choice.why));
        }
    }
    match kept.pop() {
        Some(kept) => Ok(kept.path),
        None => bail!("{}: not downloaded", typed.display()),
    }
}

/// The model, fetched now; its plan is shown first.
fn fetched(
    hub: &Hub,
    name: &ModelName,
    asked: &Asked,
    global: &Global,
    columns: Option<u16>,
) -> Result<PathBuf> {
    let found = Found::new(hub, name, &[], asked.memory_bytes)?;
    let announcement = Announcement::of(&found, asked)?;
    if !global.json {
        print_aside(&announcement.page(width_of(columns)));
    }
    if let Some(why) = announcement.why_not() {
        bail!("{} does not run here: {why}", found.name());
    }
    Ok(found.fetch(global.json)?.path)
}
