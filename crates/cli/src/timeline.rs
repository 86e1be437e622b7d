//! `--timeline` and `--picture` of a run: what ran when, beside what the simulator makes of the same
//! routing with the durations measured in that run. Writes files; decides nothing.

use crate::args::{Run, SpeculateArg};
use crate::recorder::header;
use anyhow::{Context, Result, ensure};
use motley_engine::{Engine, Session};
use motley_sim::beside::{DEFAULT_PREDICTION_ACCURACY, again, routing, typical_layer};
use motley_sim::gantt::{Window, stacked};
use motley_sim::rerun::Rerun;
use motley_sim::spans::{RowNames, Spans, chrome_trace};
use motley_trace::Trace;
use std::path::Path;

/// Whether `run` wants a timeline.
pub(crate) fn is_wanted(run: &Run) -> bool {
    run.timeline.is_some() || run.picture.is_some()
}

/// Says before anything is generated when there will be nothing to draw.
pub(crate) fn check(run: &Run, engine: &Engine) -> Result<()> {
    ensure!(
        !is_wanted(run) || run.speculate() == SpeculateArg::Off,
        "a timeline is of tokens computed one by one; leave out --speculate and --draft"
    );
    ensure!(
        !is_wanted(run) || engine.devices().is_some() || engine.streams(),
        "nothing to draw: all experts are in memory; a timeline shows a disk (--memory) or a \
         device (--devices) beside the CPU"
    );
    Ok(())
}

/// Writes what was asked for.
pub(crate) fn write(run: &Run, engine: &Engine, session: &Session) -> Result<()> {
    if !is_wanted(run) {
        return Ok(());
    }
    let recorded = engine.take_spans().unwrap_or_default();
    ensure!(recorded.iter().next().is_some(), "nothing to draw: no block was shared or streamed");
    let rows = RowNames {
        dense: "dense",
        first: engine.streams().then_some(("CPU", "disk")),
        fast: "device",
        link: "copies",
        home: "CPU",
    };
    let trace = routing(&recorded, &header(engine.spec(), &run.model));
    let simulated = simulate(engine, session, &recorded, &trace)?;
    if let Some(path) = &run.timeline {
        let both = [("this run", &recorded), ("simulator", &simulated)];
        put(path, &serde_json::to_string(&chrome_trace(&both, &rows))?)?;
    }
    match &run.picture {
        Some(path) => put(path, &picture(&trace, [&recorded, &simulated], rows)?),
        None => Ok(()),
    }
}

/// The same routing in virtual time.
fn simulate(engine: &Engine, session: &Session, recorded: &Spans, trace: &Trace) -> Result<Spans> {
    if let Some(setup) = engine.devices().and_then(|device| device.setup()) {
        return Ok(again(recorded, trace, &setup, DEFAULT_PREDICTION_ACCURACY)?);
    }
    let mut spans = Spans::default();
    Rerun::of(&engine.record(session))?.run(trace, Some(&mut spans))?;
    Ok(spans)
}

/// One layer of a token of the answer, as it was above and as simulated below.
fn picture(trace: &Trace, both: [&Spans; 2], rows: RowNames<'_>) -> Result<String> {
    let found =
        typical_layer(trace, both).context("no token was decoded, so there is no picture")?;
    let (layer, [recorded, simulated]) = found;
    let length = recorded.1.since(recorded.0).max(simulated.1.since(simulated.0));
    let titles = [
        format!("Layer {layer} of one decoded token, as it ran (layer.expert)"),
        "The same layer in the simulator, with the durations of that run".to_owned(),
    ];
    let window = |title, from| Window { title, from, to: from + length, rows };
    Ok(stacked(&[
        (both[0], window(&titles[0], recorded.0)),
        (both[1], window(&titles[1], simulated.0)),
    ])?)
}

fn put(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
