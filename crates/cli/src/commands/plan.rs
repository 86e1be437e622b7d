//! `motley plan`: what would go where on a machine, and how fast that should be. Prints; every
//! choice is `motley_plan`'s.

use crate::args::{Global, PlanArgs};
use crate::page::{Fact, align_right, bar, bytes, facts, percent, printable, table, width_of};
use crate::planned::{Here, THIS, machine, profile_of, read_profile};
use anyhow::Result;
use comfy_table::presets;
use motley_engine::machine_memory;
use motley_machine::{Device, DeviceKind, Machine};
use motley_model::ModelSpec;
use motley_plan::cores::Freedom;
use motley_plan::{
    Budget, Calibration, Inputs, MachineMemory, Plan, Prediction, Regime, SessionShape, Term, Work,
    plan,
};
use std::io::{self, Write};

/// Cells of the bars beside terms.
const BAR_CELLS: usize = 16;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &PlanArgs, columns: Option<u16>) -> Result<()> {
    let (spec, _) = ModelSpec::open(&args.model)?;
    let is_this = args.machine == THIS;
    let here = Here::find().filter(|_| is_this);
    let machine = match &here {
        Some(here) => here.machine().clone(),
        None => machine(&args.machine, Some(&args.model))?,
    };
    let profile = match &args.profile {
        Some(path) => Some(read_profile(path)?),
        None => profile_of(&args.model, &spec),
    };
    let (cpu, cores) = here.as_ref().map_or(("", 0), |here| (here.cpu(), here.cores()));
    let threads = global.threads.unwrap_or(cores);
    let profile = profile.map(|profile| profile.at_home(cpu, threads));
    let budget = Budget::of(&spec, shape(args));
    let (memory_bytes, why) = memory(global, &budget, &machine, is_this);
    let calibration = match &here {
        Some(here) => here.costs(&spec, &budget, memory_bytes, global.threads)?,
        None => Calibration::derive(&machine)?,
    };
    let plan = plan(&Inputs {
        spec: &spec,
        machine: &machine,
        calibration: &calibration,
        profile: profile.as_ref(),
        goal: args.goal.into(),
        memory_bytes,
        context_tokens: args.context,
        chunk_tokens: args.chunk,
        prompt_tokens: args.prompt,
        freedom: Freedom::Affinity,
    })?;
    let text = match global.json {
        true => plan.to_json()?,
        false => render(&plan, &why, width_of(columns)),
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

fn shape(args: &PlanArgs) -> SessionShape {
    let chunk_tokens = args.chunk.unwrap_or(motley_plan::plan::CHUNKS[0]);
    SessionShape { context_tokens: args.context, chunk_tokens, output_tokens: 1 }
}

/// RAM that may be used, and why that much: what is free now on this machine, all of another.
fn memory(global: &Global, budget: &Budget, machine: &Machine, here: bool) -> (u64, String) {
    if let Some(bytes_given) = global.memory {
        return (bytes_given, format!("{} as asked", bytes(bytes_given)));
    }
    let ram = machine.first(DeviceKind::Cpu).map_or(0, Device::total_memory_bytes);
    let described = MachineMemory { total_bytes: ram, available_bytes: ram, cgroup_bytes: None };
    let sensed = machine_memory().filter(|_| here);
    let default = budget.default_bytes(sensed.unwrap_or(described));
    (default.bytes, default.to_string())
}

fn render(plan: &Plan, why: &str, width: u16) -> String {
    let title = format!(" {} on {}", printable(&plan.model), plan.machine);
    let parts = [
        title,
        facts(&head(plan, why), width),
        placement(plan, width),
        speeds(plan, width),
        terms(plan, width),
        facts(&settings(plan), width),
    ];
    parts.join("\n")
}

fn head(plan: &Plan, why: &str) -> Vec<Fact> {
    let held = plan.placement.ram_slots() + plan.placement.gpu_slots();
    let held = held.min(plan.placement.experts);
    let experts = plan.placement.experts;
    let regime = match plan.placement.regime {
        Regime::OneMemory if experts == 0 => "one memory: a model without experts".to_owned(),
        Regime::OneMemory => "one memory: every expert stays".to_owned(),
        Regime::Hybrid => {
            format!(
                "hybrid: {} of {experts} experts on the GPU, the others in RAM",
                plan.placement.gpu_slots()
            )
        }
        Regime::NearData => format!("near data: {experts} experts in modules that compute"),
        Regime::BeyondRam => {
            format!("beyond RAM: {held} of {experts} experts stay, all are on disk")
        }
    };
    let goal = format!("{:?}", plan.goal).to_lowercase();
    let least = format!(
        "{} works, {} holds every expert",
        bytes(plan.budget.smallest_bytes()),
        bytes(plan.budget.largest_sensible_bytes())
    );
    vec![
        ("Goal", goal),
        ("Regime", regime),
        ("Memory", why.to_owned()),
        ("", least),
        ("Costs", plan.costs.clone()),
    ]
}

fn placement(plan: &Plan, width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    rows.set_header(["Device", "Dense", "KV", "Other", "Experts", "Slots", "Of"]);
    for part in &plan.placement.parts {
        rows.add_row([
            part.device.clone(),
            bytes(part.dense_bytes),
            bytes(part.kv_bytes),
            bytes(part.other_bytes),
            bytes(part.arena_bytes),
            part.expert_slots.to_string(),
            bytes(part.room_bytes),
        ]);
    }
    align_right(&mut rows, &[1, 2, 3, 4, 5, 6]);
    rows.trim_fmt()
}

fn speeds(plan: &Plan, width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    let prefill = format!("prefill {}", plan.prefill.tokens);
    rows.set_header(["Expected".to_owned(), prefill, "decode".to_owned()]);
    let mut row = |what: &str, of: &dyn Fn(&Prediction) -> String| {
        rows.add_row([what.to_owned(), of(&plan.prefill), of(&plan.decode)]);
    };
    row("tokens per second", &|p| number(p.tokens_per_s));
    row("bound by", &|p| p.bound_by.name().to_owned());
    row("experts found in memory", &|p| percent(p.hit_rate));
    row("read from disk per token", &|p| bytes(p.disk_bytes_per_token as u64));
    row("read from memory per token", &|p| bytes(p.memory_bytes_per_token as u64));
    row("joules per token", &|p| p.joules_per_token.map_or("unknown".to_owned(), number));
    align_right(&mut rows, &[1, 2]);
    rows.trim_fmt()
}

fn terms(plan: &Plan, width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    let pass = |prediction: &Prediction| format!("{} ms", number(1e3 * prediction.pass_s));
    rows.set_header([
        "One pass".to_owned(),
        pass(&plan.prefill),
        "prefill".to_owned(),
        pass(&plan.decode),
        "decode".to_owned(),
    ]);
    for (reading, writing) in plan.prefill.terms.iter().zip(&plan.decode.terms) {
        let share = |term: &Term, of: &Prediction| bar(term.seconds / of.pass_s, BAR_CELLS);
        rows.add_row([
            name(reading.what).to_owned(),
            number(1e3 * reading.seconds),
            share(reading, &plan.prefill),
            number(1e3 * writing.seconds),
            share(writing, &plan.decode),
        ]);
    }
    align_right(&mut rows, &[1, 3]);
    rows.trim_fmt()
}

fn name(work: Work) -> &'static str {
    match work {
        Work::Overhead => "fixed costs",
        Work::Dense => "dense weights",
        Work::Output => "output matrix",
        Work::Attention => "keys and values",
        Work::Experts => "experts",
        Work::DiskWait => "waiting for disk",
    }
}

fn settings(plan: &Plan) -> Vec<Fact> {
    let mut all = vec![
        ("Cache", format!("{} policy", plan.cache_policy)),
        ("Chunk", format!("{} tokens, context {}", plan.chunk_tokens, plan.context_tokens)),
    ];
    if let Some(cores) = &plan.cores {
        let count =
            format!("prefill {} cores, decode {}", cores.prefill.cores(), cores.decode.cores());
        all.push(("Cores", format!("{count} ({})", cores.described)));
    }
    if let Some(sharing) = plan.sharing {
        let (slices, groups) = (sharing.tensor_parallel, sharing.expert_parallel);
        all.push(("Units", format!("{slices} slices of each expert, {groups} groups of experts")));
    }
    if let Some(tiers) = &plan.tiers {
        let padding = 100.0 * (tiers.padding - 1.0);
        let graphs = format!("{} graphs of up to {} experts", tiers.graphs, tiers.group_size);
        all.push(("Tiers", format!("{graphs} on {}, {padding:.0} % padding", tiers.device)));
    }
    all.extend(plan.assumed.iter().map(|note| ("Assumed", note.clone())));
    all
}

/// Three figures, or whole numbers from a hundred on.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
