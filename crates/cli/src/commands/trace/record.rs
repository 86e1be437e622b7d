//! `motley trace record`: runs a model and writes down which experts every token used.

use crate::args::{Global, Record};
use crate::last::{keep_copy, write_record};
use crate::load::{Loaded, load, sampling};
use crate::recorder::{Counts, SharedRecorder, header};
use crate::terminal::{note, print_json, print_page};
use anyhow::{Context, Result, bail};
use motley_engine::{Generation, Runtime, Seam, SessionOptions};
use motley_plan::Outputs;
use std::ops::ControlFlow;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(global: &Global, record: &Record) -> Result<()> {
    let text = prompt(record)?;
    let runtime = Runtime::start(Seam::Registered)?;
    let Loaded { engine, decision } =
        load(runtime, global, &record.model, &record.load, Outputs::One)?;
    if !engine.spec().is_moe() {
        bail!("{}: a dense model has no routing to record", record.model.display());
    }
    let tokens = engine.tokenize(&text)?;
    let output = &record.output;
    let recorder = SharedRecorder::new(output, header(engine.spec(), &record.model), u64::MAX)
        .with_context(|| format!("cannot write {}", output.display()))?;
    let mut session = engine.watched_session(&SessionOptions::of(&decision), recorder.watcher())?;
    let generation = Generation {
        sampling: sampling(&record.sampling, engine.spec()),
        max_tokens: record.tokens,
        ignore_end: true,
    };
    session.generate(&tokens, &generation, &mut |_| ControlFlow::Continue(()))?;
    if let Some(path) = &record.stats {
        write_record(path, &engine, &session)?;
    }
    let counts = recorder.finish().with_context(|| output.display().to_string())?;
    if !record.no_record {
        keep_copy(&engine, &session, output);
    }
    if session.stats().seam.delegated > 0 {
        note("some expert blocks were not seen; the trace has gaps");
    }
    tell(global, output, &counts)
}

fn prompt(record: &Record) -> Result<String> {
    match (&record.prompt, &record.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        }
        (None, None) => bail!("no text to continue; give -p or --file"),
    }
}

fn tell(global: &Global, output: &Path, counts: &Counts) -> Result<()> {
    if global.json {
        print_json(&serde_json::to_string(counts)?)?;
        return Ok(());
    }
    let Counts { prefill_tokens, decode_tokens, visits } = counts;
    let output = output.display();
    print_page(&format!(
        "{output}: {prefill_tokens} prompt and {decode_tokens} decoded tokens, {visits} visits\n\
         Try it: motley sim --trace {output}"
    ))
}
