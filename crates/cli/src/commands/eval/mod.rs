//! `motley eval`: how well a model does, and whether a setting changes that. Questions
//! and windows are picked by seed before any model is loaded, so two settings see the
//! same ones.

mod page;
mod report;
mod setting;

use crate::args::{Eval, Global};
use crate::load::{Loaded, load};
use crate::npu::attach;
use crate::page::progress_target;
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use motley_engine::eval::tasks::{Pick, read_questions, read_text};
use motley_engine::eval::{
    Answers, ChoiceSettings, Perplexity, Question, Task, Windows, answer_all,
};
use motley_engine::{Engine, Runtime, Seam, Session, SessionOptions};
use motley_plan::Outputs;
use report::{EvalReport, OnDevice, Run, Subject};
use setting::Setting;
use std::path::PathBuf;

/// Runs the command.
pub(crate) fn run(global: &Global, eval: &Eval, columns: Option<u16>) -> Result<()> {
    let first = Setting::given(eval);
    let others = eval.compare.iter().map(|text| first.changed(text));
    let others: Vec<Setting> = others.collect::<Result<_>>()?;
    let work = Work::read(eval, u64::from(eval.seed))?;
    let runtime = Runtime::start(Seam::Registered)?;
    let mut runs = Vec::new();
    for setting in std::iter::once(&first).chain(&others) {
        runs.push(evaluate(runtime, global, eval, &work, setting)?);
    }
    let report = EvalReport::new(eval, u64::from(eval.seed), runs);
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_page(page::render(&report, columns).trim_end())?;
    }
    Ok(())
}

/// Everything that is asked, read before a model is.
struct Work {
    text: Option<(PathBuf, String)>,
    tasks: Vec<(Task, Vec<Question>)>,
}

impl Work {
    fn read(eval: &Eval, seed: u64) -> Result<Self> {
        let what = &eval.what;
        let text =
            what.text.as_ref().map(|path| Ok::<_, anyhow::Error>((path.clone(), read_text(path)?)));
        let pick = Pick { items: eval.items, shots: eval.shots, seed };
        let mut tasks = Vec::new();
        for (task, path) in [(Task::Boolq, &what.boolq), (Task::Hellaswag, &what.hellaswag)] {
            if let Some(path) = path {
                tasks.push((task, read_questions(task, path, &pick)?));
            }
        }
        Ok(Self { text: text.transpose()?, tasks })
    }
}

/// All of the work under one setting.
fn evaluate(
    runtime: Runtime,
    global: &Global,
    eval: &Eval,
    work: &Work,
    setting: &Setting,
) -> Result<Run> {
    let Loaded { mut engine, decision } =
        load(runtime, global, &eval.model, &setting.load, Outputs::All)?;
    let npu = attach(&mut engine, &setting.npu, decision.session.chunk_tokens, None)?;
    let options = SessionOptions { scores: true, ..SessionOptions::of(&decision) };
    let mut session = engine.session(&options)?;
    let (mut subjects, mut device) = (Vec::new(), Vec::new());
    let mut on_device = |what: &str| {
        let layers = npu.as_ref().map(|figures| figures());
        device.extend(layers.map(|layers| OnDevice { what: what.to_owned(), layers }));
    };
    if let Some((path, text)) = &work.text {
        let windows = Windows::of(&engine, text, eval.window, eval.items)?;
        ensure!(
            windows.count() > 0,
            "{}: {} tokens are less than one window; give a smaller --window",
            path.display(),
            windows.text_tokens()
        );
        let room = options.context_tokens as usize;
        ensure!(
            windows.context_tokens() <= room,
            "a window of {} tokens does not fit into a context of {room}; give a larger --context",
            windows.context_tokens()
        );
        let bar = progress(global, setting, "windows", windows.count());
        subjects.push(Subject::Text(perplexity(&mut session, &windows, eval.window, &bar)?));
        on_device("text");
    }
    for (task, questions) in &work.tasks {
        let bar = progress(global, setting, "questions", questions.len());
        let whole = (questions.as_slice(), eval.whole);
        let answers = questions_answered(&engine, &mut session, whole, &bar)
            .with_context(|| format!("{task}"))?;
        subjects.push(Subject::Questions { task: *task, answers });
        on_device(task.name());
    }
    Ok(Run { setting: setting.name.clone(), subjects, npu: device })
}

fn perplexity(
    session: &mut Session,
    windows: &Windows,
    window_tokens: usize,
    bar: &ProgressBar,
) -> Result<Perplexity> {
    let mut means = Vec::with_capacity(windows.count());
    for index in 0..windows.count() {
        means.push(windows.score(session, index)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Perplexity::of(means, window_tokens))
}

fn questions_answered(
    engine: &Engine,
    session: &mut Session,
    (questions, whole): (&[Question], bool),
    bar: &ProgressBar,
) -> Result<Answers> {
    let context = session.options().context_tokens;
    let settings = ChoiceSettings { context_tokens: context as usize, whole };
    let answers = answer_all(engine, session, questions, settings, &mut || bar.inc(1))?;
    bar.finish_and_clear();
    answers.with_context(|| {
        format!("no question fits into a context of {context}; give a larger --context")
    })
}

fn progress(global: &Global, setting: &Setting, what: &str, count: usize) -> ProgressBar {
    let target = progress_target(global.json);
    let template = format!("{}: {what} {{pos}}/{{len}} {{wide_bar}} {{eta}}", setting.name);
    let style =
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(count as u64), target).with_style(style)
}
