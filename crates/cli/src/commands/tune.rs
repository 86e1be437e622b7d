//! `motley tune`: which cores decode best, measured on the live engine (A1 to A5), and kept for
//! `run`. Prints and keeps; `motley_plan::cores` chooses.

use crate::args::{Global, Tune, TuneGoal};
use crate::known::{Known, subject};
use crate::load::execute;
use crate::page::{Fact, align_right, facts, progress_target, table, width_of};
use crate::terminal::print;
use anyhow::{Context, Result, ensure};
use comfy_table::presets;
use indicatif::{ProgressBar, ProgressStyle};
use motley_calibrate::library;
use motley_calibrate::tuning::{Candidate, TUNING_VERSION, Threads, Tuning, save};
use motley_engine::threads::cores::machine_cores;
use motley_engine::{MachineCores, Runtime, Seam, SessionOptions, ThreadSet, Tuned, tune};
use motley_plan::Outputs;
use motley_plan::cores::{Aecs, CoreSearch, CoreSet, Exhaustive, Measurement, Objective, Verdict};
use std::path::PathBuf;
use std::time::SystemTime;

/// What is continued: plain prose, so that experts are used as they typically are.
const PROMPT: &str = "The river rises in the hills to the north and runs past three towns before \
it meets the sea. For most of the year it is shallow and slow, but in spring";

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Tune, columns: Option<u16>) -> Result<()> {
    let runtime = Runtime::start(Seam::Registered)?;
    ensure!(args.wishes.threads.is_none(), "--threads: tune finds the number of threads itself");
    let known = Known::to_run(&runtime, global, &args.model, args.trust)?;
    let decision = known.decide(&args.wishes.asked(Outputs::One))?;
    let engine = execute(runtime, global, known, &decision, false)?;
    let mut session = engine.session(&SessionOptions::of(&decision))?;
    session.prefill(&engine.tokenize(PROMPT)?)?;
    let cores = machine_cores();
    let objective = match args.goal {
        TuneGoal::Energy => Objective::default(),
        TuneGoal::Speed => Objective { epsilon: 0.0, ..Objective::default() },
    };
    let mut search: Box<dyn CoreSearch> = match args.exhaustive {
        true => Box::new(Exhaustive::new(&cores.pool, None, objective)?),
        false => Box::new(Aecs::new(cores.pool.clone(), None, objective)),
    };
    let bar = spinner(global.json);
    let tuned = tune(&mut session, &cores, search.as_mut(), &mut |set, done| {
        bar.set_message(format!("choice {}: {}", done + 1, cores.pool.describe(set)));
        bar.tick();
    });
    bar.finish_and_clear();
    let tuned = tuned?.context("no choice of cores could be measured")?;
    let tuning = tuning(args, &tuned, subject(engine.spec()));
    let path = match args.dry_run {
        true => None,
        false => Some(save(&library::folder()?, &tuning)?),
    };
    let text = match global.json {
        true => {
            let report = serde_json::json!({ "file": path, "tuning": tuning });
            serde_json::to_string_pretty(&report)?
        }
        false => render(&tuned, &cores, path.as_ref(), width_of(columns)),
    };
    print(global.json, &text)
}

fn tuning(args: &Tune, tuned: &Tuned, subject: motley_calibrate::tuning::Subject) -> Tuning {
    let selection = &tuned.selection;
    let speed = |set: &CoreSet| {
        let found = tuned.measured.iter().find(|(tried, _)| tried == set);
        found.map_or(0.0, |(_, measured)| measured.tokens_per_s)
    };
    let threads = |set: &ThreadSet| Threads { threads: set.threads, cpus: set.cpus.clone() };
    let candidate = |(set, measured): &(CoreSet, Measurement)| Candidate {
        cores: set.per_cluster.clone(),
        tokens_per_s: measured.tokens_per_s,
        joules_per_token: measured.joules_per_token,
    };
    Tuning {
        motley_tuning: TUNING_VERSION,
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        program: format!("motley {}", env!("CARGO_PKG_VERSION")),
        subject,
        contended: tuned.contended,
        goal: match args.goal {
            TuneGoal::Energy => "energy".into(),
            TuneGoal::Speed => "speed".into(),
        },
        meter: tuned.meter.clone(),
        took_s: tuned.took_s,
        tokens_per_s: speed(&selection.chosen),
        fastest_tokens_per_s: speed(&selection.fastest),
        prefill: threads(&tuned.sets.prefill),
        decode: threads(&tuned.sets.decode),
        candidates: tuned.measured.iter().map(candidate).collect(),
    }
}

fn render(tuned: &Tuned, cores: &MachineCores, path: Option<&PathBuf>, width: u16) -> String {
    let selection = &tuned.selection;
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    rows.set_header(["Cores", "tokens/s", "J/token", "verdict"]);
    for (set, measured) in &tuned.measured {
        let joules = measured.joules_per_token;
        let found = selection.candidates.iter().find(|(tried, _)| tried.set == *set);
        rows.add_row([
            cores.pool.describe(set),
            format!("{:.1}", measured.tokens_per_s),
            joules.map_or("not measured".into(), |joules| format!("{joules:.2}")),
            match found.map(|(_, verdict)| verdict) {
                Some(Verdict::Chosen { .. }) => "chosen".into(),
                Some(Verdict::Dearer { .. }) => "fast enough, dearer".into(),
                Some(Verdict::TooSlow { speed }) => {
                    format!("{:.0} % of the fastest", 100.0 * speed)
                }
                None => "no candidate: another is faster with fewer cores".into(),
            },
        ]);
    }
    align_right(&mut rows, &[1, 2]);
    let meter = tuned.meter.clone();
    let mut list: Vec<Fact> = vec![
        ("Decode", cores.pool.describe(&selection.chosen)),
        ("Prefill", cores.pool.describe(&cores.pool.all_considered())),
        ("Measured", format!("{} choices in {:.1} s", selection.measured, tuned.took_s)),
        ("Energy", meter.unwrap_or_else(|| "no meter: by the heuristic of A3".into())),
    ];
    if tuned.contended {
        let note = "other work was on the cores; `run` passes this over, tune again when idle";
        list.push(("Note", note.into()));
    }
    list.extend(path.map(|path| ("Kept in", path.display().to_string())));
    format!("{}\n{}", rows.trim_fmt(), facts(&list, width))
}

/// Drawn on a terminal only.
fn spinner(quiet: bool) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {msg}").expect("the template is a constant");
    ProgressBar::with_draw_target(None, progress_target(quiet)).with_style(style)
}
