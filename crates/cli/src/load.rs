//! From flags to a decision, and from a decision to a loaded engine, with a progress bar on a
//! terminal and the one line that says what was chosen.

use crate::args::{Global, LoadArgs, SamplingArgs};
use crate::known::Known;
use crate::page::progress_target;
use crate::prices;
use crate::terminal::note;
use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use motley_engine::{Engine, EngineOptions, Loading, Runtime, Sampling, unused_cpu_level};
use motley_model::{KvType, ModelFiles, ModelSpec, Sizes, format_bytes};
use motley_plan::{Decision, Outputs};
use motley_trace::{ExpertKey, Phase};
use std::path::Path;

/// A loaded model and the decision it runs by.
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    pub(crate) decision: Decision,
}

/// Decides and loads.
pub(crate) fn load(
    runtime: Runtime,
    global: &Global,
    model: &Path,
    load: &LoadArgs,
    outputs: Outputs,
) -> Result<Loaded> {
    let known = Known::to_run(&runtime, global, model, load.trust)?;
    let known = known.with_experts(load.approximate.experts)?;
    let decision = decision(&known, load, outputs)?;
    let engine = execute(runtime, global, known, &decision, false)?;
    Ok(Loaded { engine, decision })
}

/// The decision of these flags, or the one `--plan` names.
pub(crate) fn decision(known: &Known, load: &LoadArgs, outputs: Outputs) -> Result<Decision> {
    match &load.plan {
        Some(path) => known.read_plan(path),
        None => known.decide(&load.asked(outputs)),
    }
}

/// Refuses what takes rows before the others where pairs may be left out: what it takes is not
/// there to be weighed.
pub(crate) fn check_skip(decision: &Decision, takes_first: bool) -> Result<()> {
    ensure!(
        decision.rules.skip_cold.is_none() || !takes_first,
        "--skip-cold leaves out what this machine would read; it cannot be used with --workers or \
         --npu, which take rows first"
    );
    Ok(())
}

/// Loads the model as decided and says on stderr what was chosen.
pub(crate) fn execute(
    runtime: Runtime,
    global: &Global,
    known: Known,
    decision: &Decision,
    records: bool,
) -> Result<Engine> {
    let most_used = known.profile.as_ref().map(|profile| profile.most_used(Phase::Decode));
    let opened = (known.spec, known.files);
    load_opened(runtime, global, opened, most_used.unwrap_or_default(), decision, records)
}

/// The same for a model whose files are open, with the experts that are used most.
pub(crate) fn load_opened(
    runtime: Runtime,
    global: &Global,
    opened: (ModelSpec, ModelFiles),
    most_used: Vec<ExpertKey>,
    decision: &Decision,
    records: bool,
) -> Result<Engine> {
    let options = EngineOptions::of(decision, &runtime, most_used)?;
    let options = EngineOptions { records, ..options };
    let price = prices::said(&opened.0, &opened.1.paths[0], decision);
    let bar = progress_bar(global.json);
    let engine = Engine::load_opened(runtime, opened, &options, &mut |fraction| {
        bar.set_position((fraction * 1000.0) as u64);
        true
    });
    bar.finish_and_clear();
    let engine = engine?;
    if !global.json {
        note(&chosen(engine.spec(), decision));
        if let Some(price) = price {
            note(&format!("approximate, not the model as it is: {price}"));
        }
        if let Some(hint) = unused_cpu_level() {
            note(&hint);
        }
    }
    Ok(engine)
}

/// How tokens are chosen: what was typed, else what the model's file says. Without a seed, another
/// answer each time.
pub(crate) fn sampling(args: &SamplingArgs, spec: &ModelSpec) -> Sampling {
    let of_model = Sampling::of_model(&spec.sampling);
    Sampling {
        temperature: args.temperature.unwrap_or(of_model.temperature),
        top_k: args.top_k.unwrap_or(of_model.top_k),
        top_p: args.top_p.unwrap_or(of_model.top_p),
        min_p: args.min_p.unwrap_or(of_model.min_p),
        repeat_penalty: args.repeat_penalty.unwrap_or(of_model.repeat_penalty),
        seed: args.seed.unwrap_or_else(|| fastrand::u32(..)),
        ..of_model
    }
}

/// One line: the model, where its experts are, with how many threads, and what to expect.
fn chosen(spec: &ModelSpec, decision: &Decision) -> String {
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    let total = format_bytes(Sizes::of(spec).total_bytes);
    let threads = decision.threads.decode.threads;
    let context = decision.session.context_tokens;
    let kv = match decision.session.kv {
        KvType::F16 => String::new(),
        _ => format!(" in {}", decision.why.kv),
    };
    let expected = format!("; {context} tokens of context{kv}{}", expectation(spec, decision));
    if !spec.is_moe() {
        return format!("{name}, {total}, dense: plain llama.cpp, {threads} threads{expected}");
    }
    let place = match (decision.devices.is_empty(), decision.loading) {
        (true, _) => decision.why.loading.clone(),
        (false, Loading::OnDemand) => {
            format!("{}; {}", decision.why.loading, decision.why.devices)
        }
        (false, Loading::Mapped) => decision.why.devices.clone(),
    };
    let approximate = decision.why.approximate.iter().map(|what| format!("; approximate: {what}"));
    let nodes = decision.why.nodes.iter().map(|said| format!("; {said}")).collect::<String>();
    format!(
        "{name}, {total}, {} layers × {} experts, {} per token: {place}; {threads} \
         threads{nodes}{}{expected}",
        spec.expert_layers().count(),
        spec.experts,
        spec.used,
        approximate.collect::<String>(),
    )
}

/// The speed measured costs let expect; nothing where nobody measured.
fn expectation(spec: &ModelSpec, decision: &Decision) -> String {
    if !decision.costs_measured {
        return String::new();
    }
    let (prefill, decode) = (decision.prefill.tokens_per_s, decision.decode.tokens_per_s);
    match spec.embedding {
        Some(_) => format!("; expected {prefill:.0}/s"),
        None => format!("; expected {prefill:.0}/s for prompts, {decode:.1}/s after"),
    }
}

fn progress_bar(quiet: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("loading {wide_bar} {percent}%")
        .expect("the template is a constant");
    ProgressBar::with_draw_target(Some(1000), progress_target(quiet)).with_style(style)
}
