//! `motley run`: answers one question, continues one text, or chats.
//!
//! * `question`: what is asked, from flags, files and pipes.
//! * `talk`: the conversation; `interrupt`: Ctrl-C; `screen`: answers as they arrive.
//! * `chat`: what is typed; `editor`: typing it; `saved`: conversations kept.
//! * `draft`: a small model that guesses for it.
//! * `figures`: what is said about an answer; `told`: to whom.

mod chat;
mod draft;
mod editor;
mod figures;
mod interrupt;
mod question;
mod saved;
mod screen;
mod talk;
mod told;

use crate::args::{Global, Run, SpeculateArg};
use crate::known::Known;
use crate::last::{self, Keep, LastRun, write_record};
use crate::load::{check_skip, execute, sampling};
use crate::npu;
use crate::sandbox::{Needs, Sandbox};
use crate::terminal::{note, print_json};
use crate::timeline;
use crate::workers::Workers;
use anyhow::{Result, bail, ensure};
use chat::Chat;
use draft::Draft;
use figures::{Expected, RunReport, Units};
use motley_engine::{EnergyWatch, Engine, Generation, Runtime, Seam, SessionOptions, Speculate};
use motley_plan::Decision;
use question::Question;
use screen::Screen;
use std::path::{Path, PathBuf};
use talk::{Manners, Talk};
use told::Told;

/// Runs the command.
pub(crate) fn run(global: &Global, run: &Run) -> Result<()> {
    let question = Question::read(run)?;
    ensure!(
        !global.json || question != Question::Chat,
        "--json is for one answer: give a question with -p, with -f or through a pipe"
    );
    let runtime = Runtime::start(Seam::Registered)?;
    let known = Known::to_run(&runtime, global, &run.model, run.load.trust)?;
    let mut known = known.with_experts(run.load.approximate.experts)?;
    known.measure_once(&runtime, global)?;
    let mut load = run.load.clone();
    load.wishes.prompt = question.tokens_about(known.spec.shape.context_tokens);
    let mut draft = Draft::open(&runtime, global, run, &known)?;
    let (decision, share) = draft::decide(draft.as_mut(), &mut known, &load, run)?;
    // Meters are looked for before files are given up.
    let energy = EnergyWatch::of(Path::new("/"), &decision);
    let chat = Chat::prepare(&question, run, known.measured.clone())?;
    run.workers.check_beside(&run.npu)?;
    check_skip(&decision, run.workers.is_used() || run.npu.is_used())?;
    let workers = Workers::divided(&run.workers, runtime, &known.files.paths[0], &decision)?;
    let files =
        [known.files.paths.as_slice(), draft.as_ref().map_or(&[][..], Draft::files)].concat();
    let sandbox = restrict_files(run, files, &decision, &chat, workers.as_ref())?;
    let mut engine = execute(runtime, global, known, &decision, timeline::is_wanted(run))?;
    if !global.json {
        npu::announce(&run.npu, &share);
    }
    let chunk_tokens = decision.session.chunk_tokens;
    if let Some(workers) = &workers {
        workers.attach(&mut engine);
        if !global.json {
            note(&workers.chosen());
        }
    }
    let on_graphs = npu::attach(&mut engine, &run.npu, chunk_tokens, Some(share))?;
    timeline::check(run, &engine)?;
    let speculate = speculate(global, run, &decision, &engine)?;
    let replays = speculate == Speculate::Off && decision.rules.skip_cold.is_none();
    let last = LastRun::start(&engine, &run.model, kept(run, replays));
    let options = SessionOptions { speculate, ..SessionOptions::of(&decision) };
    let mut session = last::session(&engine, &options, last.as_ref())?;
    let _draft =
        draft.map(|draft| draft.load(runtime, global, &engine, &mut session)).transpose()?;
    session.energy = energy;
    sandbox.restrict_calls()?;
    let manners = Manners {
        system: run.system.as_deref(),
        think: !run.no_think,
        screen: Screen::stdout(!global.json, !run.no_think),
    };
    let mut talk = Talk::new(&engine, session, generation(run, &engine), &manners)?;
    let told = Told {
        global,
        units: Units { engine: &engine, on_graphs },
        expected: Expected::of(&decision, run.tokens),
    };
    match &question {
        Question::Once(text) => once(run, &told, &mut talk, text)?,
        Question::Chat => chat.talk(&told, &mut talk)?,
    }
    finish(run, &told, &talk, last)?;
    if !global.json {
        engine.workers().iter().for_each(|worker| note(&worker.to_string()));
    }
    Ok(())
}

/// Whether tokens are guessed ahead: as asked, where nothing is against it.
fn speculate(
    global: &Global,
    run: &Run,
    decision: &Decision,
    engine: &Engine,
) -> Result<Speculate> {
    let against = match run.speculate() {
        SpeculateArg::Off => return Ok(Speculate::Off),
        SpeculateArg::Auto if decision.exact => {
            "--exact computes tokens one by one, because several at once round differently"
        }
        SpeculateArg::Auto if !engine.keeps_every_position() => {
            "this model has layers with one state for all tokens, which takes none back"
        }
        SpeculateArg::Auto => return Ok(Speculate::Auto),
    };
    if let Some(draft) = &run.draft {
        bail!("--draft {} would guess nothing: {against}; leave it out", draft.display());
    }
    if !global.json {
        note(&format!("no tokens are guessed ahead: {against}"));
    }
    Ok(Speculate::Off)
}

/// `replays` when what is routed is what is computed.
fn kept(run: &Run, replays: bool) -> Keep {
    match replays {
        _ if run.no_record => Keep::Nothing,
        true => Keep::Everything,
        false => Keep::Figures,
    }
}

/// What follows the last answer: energy, and everything that is kept.
fn finish(run: &Run, told: &Told<'_>, talk: &Talk<'_>, last: Option<LastRun>) -> Result<()> {
    let (engine, session) = (talk.engine, &talk.session);
    if let Some(energy) = engine.record(session).energy.filter(|_| !told.global.json) {
        note(&energy.to_string());
    }
    if let Some(last) = last {
        last.finish(engine, session);
    }
    timeline::write(run, engine, session)?;
    run.stats.as_ref().map_or(Ok(()), |path| write_record(path, engine, session))
}

fn generation(run: &Run, engine: &Engine) -> Generation {
    Generation {
        sampling: sampling(&run.sampling, engine.spec()),
        max_tokens: run.tokens.unwrap_or(usize::MAX),
        ignore_end: false,
    }
}

/// What is written: the last run, what was typed and saved, and what flags name.
fn restrict_files(
    run: &Run,
    model_files: Vec<PathBuf>,
    decision: &Decision,
    chat: &Chat,
    workers: Option<&Workers>,
) -> Result<Sandbox> {
    let kept = if run.no_record && !chat.saves() { None } else { last::make_folder() };
    let named = [&run.stats, &run.timeline, &run.picture].into_iter().flatten().cloned();
    let written: Vec<PathBuf> = kept.into_iter().chain(named).chain(run.npu.written()).collect();
    let needs = Needs {
        model_files,
        devices: !decision.devices.is_empty(),
        written: &written,
        library: run.npu.load_library()?,
        outgoing_ports: workers.map_or_else(Vec::new, |workers| workers.ports().to_vec()),
    };
    Sandbox::restrict_files(run.sandbox.sandbox, needs)
}

/// One question, or one text to continue. A model without a template can only continue.
fn once(run: &Run, told: &Told<'_>, talk: &mut Talk<'_>, text: &str) -> Result<()> {
    let asks = !run.raw && talk.engine.chat_template().is_some();
    if !asks && !run.raw && !told.global.json {
        note("the model has no chat template: the text is continued as it is (--raw says so)");
    }
    let answer = told.answered(talk, |talk| match asks {
        true => talk.ask(text),
        false => talk.continue_text(text),
    })?;
    if !told.global.json {
        return Ok(());
    }
    let report = RunReport::new(&answer, talk, &told.units, &told.expected);
    print_json(&serde_json::to_string(&report)?)
}
