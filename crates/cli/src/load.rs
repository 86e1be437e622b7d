//! From flags to a loaded engine and its settings, with a progress bar on a terminal and the one
//! line that says what was chosen.

use crate::args::{Global, LoadArgs, LoadingArg, SamplingArgs};
use anyhow::Result;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use motley_engine::{
    Budget, Engine, EngineOptions, Loading, Runtime, Sampling, SessionOptions, StreamingOptions,
    unused_cpu_level,
};
use motley_model::{ModelSpec, Sizes};
use std::path::Path;

/// Options for the engine.
pub(crate) fn engine_options(load: &LoadArgs, threads: Option<u32>) -> EngineOptions {
    let loading = match (load.loading, load.memory) {
        (LoadingArg::Mapped, None) => Loading::Mapped,
        _ => Loading::OnDemand,
    };
    EngineOptions {
        loading,
        repack: !load.exact,
        threads,
        memory_bytes: load.memory,
        streaming: StreamingOptions {
            policy: load.policy,
            prefetch: load.prefetch,
            ..StreamingOptions::default()
        },
    }
}

/// Options for a session.
pub(crate) fn session_options(load: &LoadArgs) -> SessionOptions {
    SessionOptions {
        context_tokens: load.context,
        chunk_tokens: load.chunk,
        ..SessionOptions::default()
    }
}

/// How tokens are chosen.
pub(crate) fn sampling(args: &SamplingArgs, seed: u32) -> Sampling {
    Sampling {
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        min_p: args.min_p,
        repeat_penalty: args.repeat_penalty,
        seed,
        ..Sampling::default()
    }
}

/// Loads the model and says on stderr what was chosen.
pub(crate) fn load(
    runtime: Runtime,
    model: &Path,
    load: &LoadArgs,
    global: &Global,
) -> Result<Engine> {
    if let Some(memory) = load.memory {
        let (spec, _) = ModelSpec::open(model)?;
        Budget::of(&spec, load.context, load.chunk).slots(memory)?;
    }
    let options = engine_options(load, global.threads);
    let bar = progress_bar(global.json);
    let engine = Engine::load(runtime, model, &options, &mut |fraction| {
        bar.set_position((fraction * 1000.0) as u64);
        true
    });
    bar.finish_and_clear();
    let engine = engine?;
    if !global.json {
        eprintln!("motley: {}", chosen(engine.spec(), load, engine.threads()));
        if let Some(hint) = unused_cpu_level() {
            eprintln!("motley: {hint}");
        }
    }
    Ok(engine)
}

/// One line: the model, where its experts are, and with how many threads.
fn chosen(spec: &ModelSpec, load: &LoadArgs, threads: u32) -> String {
    let sizes = Sizes::of(spec);
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    let total = HumanBytes(sizes.total_bytes);
    if !spec.is_moe() {
        return format!("{name}, {total}, dense: plain llama.cpp, {threads} threads");
    }
    let place = match (load.loading, load.memory) {
        (LoadingArg::Mapped, None) if !load.exact => {
            "experts in memory, rearranged for this CPU where it helps".into()
        }
        (LoadingArg::Mapped, None) => "experts mapped from the file".into(),
        (_, None) => "experts read from disk when first needed".into(),
        (_, Some(memory)) => within(spec, load, memory),
    };
    format!(
        "{name}, {total}, {} layers × {} experts, {} per token: {place}; {threads} threads",
        spec.expert_layers().count(),
        spec.experts,
        spec.used,
    )
}

/// How many experts stay within the budget, which has been found large enough.
fn within(spec: &ModelSpec, load: &LoadArgs, memory: u64) -> String {
    let budget = Budget::of(spec, load.context, load.chunk);
    let kept = budget.slots(memory).unwrap_or(0);
    let rest = if kept < budget.experts { "the others on disk" } else { "all of them" };
    format!(
        "{} in all, {kept} of {} experts stay in memory ({}), {rest}",
        HumanBytes(memory),
        budget.experts,
        load.policy.name(),
    )
}

fn progress_bar(quiet: bool) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("loading {wide_bar} {percent}%")
        .expect("the template is a constant");
    ProgressBar::with_draw_target(Some(1000), target).with_style(style)
}
