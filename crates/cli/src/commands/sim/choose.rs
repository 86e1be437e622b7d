//! `motley sim --choose`: the policy and the prefetcher of each memory by replay, with a hold-out
//! (M6). `motley calibrate MODEL --text` keeps the same with the profile.

use super::subject::Subject;
use crate::args::Global;
use crate::page::{Fact, facts, printable, progress_target, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use motley_machine::Machine;
use motley_sched::regime::Regime;
use motley_sim::choose::{ChooseError, MARGIN};
use motley_sim::setup::Setup;
use motley_sim::{Choice, choose};
use motley_trace::Trace;
use serde_json::json;

/// Replays of a search that goes once around and finds something.
const USUAL_REPLAYS: u64 = 50;

/// Runs the command.
pub(super) fn run(
    global: &Global,
    machine: &Machine,
    subject: &Subject,
    setup: &Setup,
    columns: Option<u16>,
) -> Result<()> {
    if setup.regime == Regime::OneMemory {
        bail!("--choose has nothing to choose: every expert is in one memory; give less --cache");
    }
    let default = setup.scheduler.rules;
    let choice = with_bar(global, setup, &subject.trace)?;
    if global.json {
        let rules = |rules: &motley_sched::Rules| json!({ "policy": rules.policies(), "prefetch": rules.prefetchers() });
        return print_json(&serde_json::to_string_pretty(&json!({
            "machine": machine.name,
            "model": subject.shape.name,
            "routing": subject.routing,
            "default": rules(&default),
            "fastest": rules(&choice.best),
            "gain": choice.gain,
            "held_out_gain": choice.held_out_gain,
            "held_out_tokens": choice.held_out_tokens,
            "kept": choice.holds(),
            "tried": choice.tried,
        }))?);
    }
    let (model, machine) = (printable(&subject.shape.name), printable(&machine.name));
    let mut told: Vec<Fact> = vec![(
        "Defaults",
        format!("{} policy, {} prefetch", default.policies(), default.prefetchers()),
    )];
    told.extend(told_choice(&choice));
    let title = format!(" {model} on {machine}: {}", subject.routing);
    print_page(&format!("{title}\n\n{}", facts(&told, width_of(columns))))
}

/// Chooses, with a bar on a terminal.
pub(crate) fn with_bar(
    global: &Global,
    setup: &Setup,
    trace: &Trace,
) -> Result<Choice, ChooseError> {
    let style = ProgressStyle::with_template("replaying {wide_bar} {pos} ways")
        .expect("the template is a constant");
    let bar = ProgressBar::with_draw_target(Some(USUAL_REPLAYS), progress_target(global.json));
    let bar = bar.with_style(style);
    let choice = choose(setup, trace, &mut || bar.inc(1));
    bar.finish_and_clear();
    choice
}

/// What was found, for a page.
pub(crate) fn told_choice(choice: &Choice) -> Vec<Fact> {
    let Choice { best, gain, held_out_gain, held_out_tokens, tried } = choice;
    let percent = |gain: f64| format!("{:+.1} %", 100.0 * gain);
    let verdict = match choice.holds() {
        true => "kept".to_owned(),
        false => format!("the defaults stay: less than {} there", percent(MARGIN)),
    };
    vec![
        (
            "Fastest",
            format!("{} policy, {} prefetch, of {tried}", best.policies(), best.prefetchers()),
        ),
        ("Speed", format!("{} on the tokens it was chosen by", percent(*gain))),
        ("Held out", format!("{} on {held_out_tokens} tokens: {verdict}", percent(*held_out_gain))),
    ]
}
