//! `motley eval`: how well a model does, and whether a setting changes that. Questions
//! and windows are picked by seed before any model is loaded, so two settings see the
//! same ones.

mod page;
mod priced;
mod report;
mod setting;

use crate::args::{Eval, Global};
use crate::load::{Loaded, check_skip, load};
use crate::npu::attach;
use crate::page::progress_target;
use crate::prices::keep;
use crate::terminal::{note, print_json, print_page};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use motley_engine::eval::tasks::{Pick, read_questions, read_text};
use motley_engine::eval::{
    Answers, ChoiceSettings, Divergence, Pace, Perplexity, Question, Reference, ReferenceError,
    Task, Windows, answer_all,
};
use motley_engine::{Engine, Runtime, Seam, Session, SessionOptions};
use motley_plan::Outputs;
use motley_plan::price::Approximation;
use report::{EvalReport, OnDevice, Run, Subject, Text};
use setting::Setting;
use std::path::PathBuf;

/// Runs the command.
pub(crate) fn run(global: &Global, eval: &Eval, columns: Option<u16>) -> Result<()> {
    let first = Setting::given(eval);
    let others = eval.compare.iter().map(|text| first.changed(text));
    let others: Vec<Setting> = others.collect::<Result<_>>()?;
    let work = Work::read(eval, u64::from(eval.seed))?;
    let runtime = Runtime::start(Seam::Registered)?;
    let all: Vec<&Setting> = std::iter::once(&first).chain(&others).collect();
    let mut asked = Asked::of(eval, &work, &all)?;
    let mut runs = Vec::new();
    for setting in all {
        runs.push(evaluate((runtime, global), &mut asked, setting)?);
    }
    let report = EvalReport::new(eval, u64::from(eval.seed), runs);
    let kept = priced::prices(eval, &report)?.map(|prices| keep(&prices)).transpose()?;
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_page(page::render(&report, columns).trim_end())?;
        if let Some(kept) = kept {
            let of = "prices of approximations are kept for `motley plan --accept-kl` and `run`";
            note(&format!("{of}: {}", kept.display()));
        }
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

/// What every setting is asked, and what the first said.
struct Asked<'a> {
    eval: &'a Eval,
    work: &'a Work,
    pace: Pace,
    /// Where several settings read a text.
    reference: Option<Reference>,
}

impl<'a> Asked<'a> {
    /// What is left out hangs on what is in memory while answers are made; so where a setting
    /// approximates, tokens are computed as those of answers are.
    fn of(eval: &'a Eval, work: &'a Work, settings: &[&Setting]) -> Result<Self> {
        let approximates = settings.iter().any(|setting| setting.is_approximate());
        let compares = settings.len() > 1 && work.text.is_some();
        Ok(Self {
            eval,
            work,
            pace: if approximates { Pace::TokenByToken } else { Pace::Chunks },
            reference: compares.then(Reference::start).transpose()?,
        })
    }
}

/// All of the work under one setting; the first to come is what the others are compared with.
fn evaluate(
    (runtime, global): (Runtime, &Global),
    asked: &mut Asked<'_>,
    setting: &Setting,
) -> Result<Run> {
    let Asked { eval, work, pace, .. } = *asked;
    let Loaded { mut engine, decision } =
        load(runtime, global, &eval.model, &setting.load, Outputs::All)?;
    check_skip(&decision, setting.npu.is_used())?;
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
        let scored = Scored { windows: &windows, window_tokens: eval.window, pace, bar: &bar };
        subjects.push(Subject::Text(scored.run(&mut session, asked.reference.as_mut())?));
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
    let speed = (pace == Pace::TokenByToken).then(|| session.stats().decode.tokens_per_s());
    let left_out = decision.rules.skip_cold.map(|_| session.stats().decode.left_out());
    let (experts_used, skip_cold) = (decision.experts_used, decision.rules.skip_cold);
    let slots = decision.streamed_slots().map(f64::from);
    Ok(Run {
        setting: setting.name.clone(),
        subjects,
        approximation: Approximation { experts_used, skip_cold },
        only_approximates: setting.only_approximates,
        held: slots.map_or(1.0, |slots| slots / f64::from(decision.budget.experts.max(1))),
        decode_per_s: speed,
        left_out,
        npu: device,
    })
}

/// Sees the number of the window and the logits of each of its tokens.
type OnLogits<'a> = &'a mut dyn FnMut(usize, &[f32]) -> Result<(), ReferenceError>;

/// A text to be scored.
struct Scored<'a> {
    windows: &'a Windows,
    window_tokens: usize,
    pace: Pace,
    bar: &'a ProgressBar,
}

impl Scored<'_> {
    /// Fills an empty reference; compares with one that is not.
    fn run(&self, session: &mut Session, reference: Option<&mut Reference>) -> Result<Text> {
        let Some(reference) = reference else {
            let perplexity = self.perplexity(session, &mut |_, _| Ok(()))?;
            return Ok(Text { perplexity, divergence: None });
        };
        if reference.is_empty() {
            let perplexity = self.perplexity(session, &mut |_, logits| reference.push(logits))?;
            return Ok(Text { perplexity, divergence: None });
        }
        let mut kept = reference.read()?;
        let mut windows = vec![Vec::new(); self.windows.count()];
        let perplexity = self.perplexity(session, &mut |window, logits| {
            windows[window].push(kept.next_divergence(logits)?);
            Ok(())
        })?;
        Ok(Text { perplexity, divergence: Some(Divergence::of(&windows)) })
    }

    /// Window by window, with their logits shown.
    fn perplexity(&self, session: &mut Session, on_logits: OnLogits<'_>) -> Result<Perplexity> {
        let mut means = Vec::with_capacity(self.windows.count());
        for index in 0..self.windows.count() {
            let mut failed = None;
            let mut keep = |logits: &[f32]| {
                if failed.is_none() {
                    failed = on_logits(index, logits).err();
                }
            };
            means.push(self.windows.score(session, (index, self.pace), &mut keep)?);
            if let Some(failed) = failed {
                return Err(failed.into());
            }
            self.bar.inc(1);
        }
        self.bar.finish_and_clear();
        Ok(Perplexity::of(means, self.window_tokens))
    }
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
