//! From flags to a loaded engine and its settings, with a progress bar on a terminal and the one
//! line that says what was chosen.

use crate::args::{Global, LoadArgs, LoadingArg, SamplingArgs};
use crate::devices;
use crate::page::progress_target;
use crate::planned::{self, Here, Wanted, everything};
use anyhow::Result;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use motley_calibrate::library;
use motley_calibrate::tuning::{Subject, Threads, newest};
use motley_engine::{
    Engine, EngineOptions, Loading, MachineCores, Runtime, Sampling, SessionOptions,
    StreamingOptions, ThreadSet, ThreadSets, machine_memory, unused_cpu_level,
};
use motley_model::{ModelSpec, Sizes};
use motley_plan::budget::{Budget, BudgetReason};
use motley_plan::cores::CoreSet;
use motley_plan::{CorePlan, Plan, Regime};
use motley_trace::Phase;
use std::path::Path;

/// Length of the prompts for which chunks are compared and speed is told.
const PROMPT_TOKENS: u32 = 1024;

/// Where weights will live, and why: decided before anything is loaded.
pub(crate) struct Residence {
    pub(crate) loading: Loading,
    pub(crate) memory_bytes: Option<u64>,
    /// Cores a plan names.
    cores: Option<ThreadSets>,
    why: String,
}

impl Residence {
    /// As told by `--memory` and `--loading`; else mapped when everything fits into what the
    /// machine can give, and streamed within that when not (M3).
    pub(crate) fn choose(spec: &ModelSpec, load: &LoadArgs, memory: Option<u64>) -> Result<Self> {
        let budget = Budget::of(spec, session_options(load).shape());
        let on_demand =
            |memory_bytes, why| Self { loading: Loading::OnDemand, memory_bytes, cores: None, why };
        if let Some(memory) = memory {
            let why = within(&budget, memory, load, "as told")?;
            return Ok(on_demand(Some(memory), why));
        }
        match (load.loading, machine_memory().filter(|_| spec.is_moe())) {
            (Some(LoadingArg::OnDemand), _) => {
                Ok(on_demand(None, "experts read from disk when first needed".into()))
            }
            (None, Some(machine)) => {
                let chosen = budget.default_bytes(machine);
                if chosen.reason == BudgetReason::EverythingFits {
                    return Ok(Self::mapped(load));
                }
                let why = within(&budget, chosen.bytes, load, &chosen.to_string())?;
                Ok(on_demand(Some(chosen.bytes), why))
            }
            _ => Ok(Self::mapped(load)),
        }
    }

    /// As a plan says.
    fn planned(plan: &Plan, load: &LoadArgs) -> Self {
        let cores = plan.cores.as_ref().and_then(planned_cores);
        if plan.placement.regime != Regime::BeyondRam {
            return Self { cores, ..Self::mapped(load) };
        }
        let (kept, all) =
            (plan.placement.ram_slots().min(plan.budget.experts), plan.budget.experts);
        let size = HumanBytes(plan.memory_bytes);
        let why = format!("{size} in all (as planned), {kept} of {all} experts stay in memory");
        Self { loading: Loading::OnDemand, memory_bytes: Some(plan.memory_bytes), cores, why }
    }

    fn mapped(load: &LoadArgs) -> Self {
        let why = match load.exact {
            false => "experts in memory, rearranged for this CPU where it helps",
            true => "experts mapped from the file",
        };
        Self { loading: Loading::Mapped, memory_bytes: None, cores: None, why: why.into() }
    }
}

/// The plan's cores, when they are of a machine with as many kinds of cores as this one.
fn planned_cores(plan: &CorePlan) -> Option<ThreadSets> {
    let here = MachineCores::read();
    let fits = |set: &CoreSet| set.per_cluster.len() == here.pool.clusters.len();
    (fits(&plan.prefill) && fits(&plan.decode)).then(|| ThreadSets {
        prefill: here.threads(&plan.prefill),
        decode: here.threads(&plan.decode),
    })
}

/// How many experts stay within the budget.
fn within(budget: &Budget, memory: u64, load: &LoadArgs, source: &str) -> Result<String> {
    let kept = budget.slots(memory)?.min(budget.experts);
    let rest = if kept < budget.experts { "the others on disk" } else { "all of them" };
    Ok(format!(
        "{} in all ({source}), {kept} of {} experts stay in memory ({}), {rest}",
        HumanBytes(memory),
        budget.experts,
        load.policy.name(),
    ))
}

/// What a tuning of this model on this machine is kept under.
pub(crate) fn subject(spec: &ModelSpec) -> Subject {
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    Subject::here(name, Sizes::of(spec).total_bytes)
}

/// The cores `motley tune` chose for this model here, where it has.
fn tuned(spec: &ModelSpec) -> Option<ThreadSets> {
    let found = newest(&library::folder().ok()?, &subject(spec))?;
    let set = |threads: Threads| ThreadSet { threads: threads.threads, cpus: threads.cpus };
    Some(ThreadSets { prefill: set(found.prefill), decode: set(found.decode) })
}

/// Options for the engine.
fn engine_options(
    spec: &ModelSpec,
    load: &LoadArgs,
    threads: Option<u32>,
    residence: &Residence,
) -> EngineOptions {
    EngineOptions {
        loading: residence.loading,
        repack: !load.exact,
        threads,
        cores: residence.cores.clone().or_else(|| tuned(spec)),
        memory_bytes: residence.memory_bytes,
        streaming: StreamingOptions {
            policy: load.policy,
            prefetch: load.prefetch,
            ..StreamingOptions::default()
        },
        records: load.records,
        ..EngineOptions::default()
    }
}

/// The settings of a run: those of `--plan` in place of the ones given, else what a plan made
/// here and now says of what was not given. Without a calibration nothing is known to plan with.
pub(crate) fn settled(load: &LoadArgs, model: &Path, global: &Global) -> Result<LoadArgs> {
    let (spec, _) = ModelSpec::open(model)?;
    let Some(path) = &load.plan else {
        let plan = || planned::expected(model, &spec, &wanted(&spec, load, global, global.memory));
        let chunk = load.chunk.or_else(|| plan().map(|plan| plan.chunk_tokens));
        return Ok(LoadArgs { chunk, ..load.clone() });
    };
    let plan = planned::read(path, &spec)?;
    Ok(LoadArgs {
        policy: plan.cache_policy.parse()?,
        context: plan.context_tokens,
        chunk: Some(plan.chunk_tokens),
        ..load.clone()
    })
}

/// What a plan of these settings is to be made for.
fn wanted(spec: &ModelSpec, load: &LoadArgs, global: &Global, memory_bytes: Option<u64>) -> Wanted {
    let shape = session_options(load).shape();
    let default = || match machine_memory().filter(|_| spec.is_moe()) {
        Some(machine) => Budget::of(spec, shape).default_bytes(machine).bytes,
        None => everything(spec, shape),
    };
    Wanted {
        memory_bytes: memory_bytes.unwrap_or_else(default),
        context_tokens: shape.context_tokens,
        chunk_tokens: load.chunk,
        prompt_tokens: shape.context_tokens.min(PROMPT_TOKENS),
        threads: global.threads,
    }
}

/// Options for a session.
pub(crate) fn session_options(load: &LoadArgs) -> SessionOptions {
    SessionOptions {
        context_tokens: load.context,
        chunk_tokens: load.chunk_tokens(),
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
    let (spec, _) = ModelSpec::open(model)?;
    let plan = load.plan.as_deref().map(|path| planned::read(path, &spec)).transpose()?;
    let residence = match &plan {
        Some(plan) => Residence::planned(plan, load),
        None => Residence::choose(&spec, load, global.memory)?,
    };
    let mut options = engine_options(&spec, load, global.threads, &residence);
    let device = devices::apply(&runtime, &global.devices, &spec, load, &mut options)?;
    if let Some(here) = Here::find().filter(|_| options.hybrid.is_some()) {
        let costs = here.plain_costs(&spec, global.threads)?;
        options.hybrid = options.hybrid.map(|hybrid| hybrid.calibrated(&costs, &spec));
    }
    if let Some(hybrid) = &mut options.hybrid
        && let Some(profile) = planned::profile_of(model, &spec)
    {
        hybrid.most_used = profile.most_used(Phase::Decode);
    }
    let bar = progress_bar(global.json);
    let engine = Engine::load(runtime, model, &options, &mut |fraction| {
        bar.set_position((fraction * 1000.0) as u64);
        true
    });
    bar.finish_and_clear();
    let engine = engine?;
    if !global.json {
        let why = match (device, residence.loading) {
            (Some(device), Loading::OnDemand) => format!("{}; {device}", residence.why),
            (Some(device), Loading::Mapped) => device,
            (None, _) => residence.why.clone(),
        };
        let line = chosen(engine.spec(), &why, engine.threads());
        eprintln!("motley: {line}{}", expectation(model, &spec, load, global, &residence));
        if let Some(hint) = unused_cpu_level() {
            eprintln!("motley: {hint}");
        }
    }
    Ok(engine)
}

/// The speed the measured costs let expect; nothing where the machine is not calibrated.
fn expectation(
    path: &Path,
    spec: &ModelSpec,
    load: &LoadArgs,
    global: &Global,
    residence: &Residence,
) -> String {
    let shape = session_options(load).shape();
    let memory = residence.memory_bytes.unwrap_or_else(|| everything(spec, shape));
    let wanted = wanted(spec, load, global, Some(memory));
    let Some(plan) = planned::expected(path, spec, &wanted) else { return String::new() };
    let (prefill, decode) = (plan.prefill.tokens_per_s, plan.decode.tokens_per_s);
    format!("; expected {prefill:.0}/s for prompts, {decode:.1}/s after")
}

/// One line: the model, where its experts are, and with how many threads.
fn chosen(spec: &ModelSpec, place: &str, threads: u32) -> String {
    let sizes = Sizes::of(spec);
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    let total = HumanBytes(sizes.total_bytes);
    if !spec.is_moe() {
        return format!("{name}, {total}, dense: plain llama.cpp, {threads} threads");
    }
    format!(
        "{name}, {total}, {} layers × {} experts, {} per token: {place}; {threads} threads",
        spec.expert_layers().count(),
        spec.experts,
        spec.used,
    )
}

fn progress_bar(quiet: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("loading {wide_bar} {percent}%")
        .expect("the template is a constant");
    ProgressBar::with_draw_target(Some(1000), progress_target(quiet)).with_style(style)
}
