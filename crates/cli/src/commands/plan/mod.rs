//! `motley plan`: what would go where on a machine, and how fast that should be. Prints; every
//! choice is `motley_plan`'s.
//!
//! * `helped`: whether other machines pay.

mod helped;

use crate::args::{Global, PlanArgs};
use crate::known::{Known, THIS, read_profile};
use crate::load::check_skip;
use crate::page::{Fact, align_right, bar, facts, number, percent, printable, table, width_of};
use crate::prices;
use crate::terminal::print;
use anyhow::Result;
use comfy_table::presets;
use helped::Helped;
use motley_engine::{Runtime, Seam};
use motley_model::format_bytes;
use motley_plan::price::Approximation;
use motley_plan::{Asked, Decision, Outputs, Prediction, Regime, Term, Work};
use serde_json::json;

/// Cells of the bars beside terms.
const BAR_CELLS: usize = 16;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &PlanArgs, columns: Option<u16>) -> Result<()> {
    let (mut known, runtime) = match args.machine.as_str() {
        THIS => {
            let runtime = Runtime::start(Seam::Registered)?;
            (Known::here(&runtime, &args.model)?, Some(runtime))
        }
        other => (Known::described(motley_machine::find(other)?, &args.model)?, None),
    };
    known = known.with_experts(args.approximate.experts)?;
    if let Some(path) = &args.profile {
        known.profile = Some(read_profile(path)?);
    }
    let mut asked = Asked {
        goal: args.goal.into(),
        prompt_tokens: args.prompt,
        ..args.approximate.beside(args.wishes.asked(Outputs::One))
    };
    if let Some(kl) = args.accept_kl {
        let approximation = accepted(&known, kl, &asked)?;
        known = known.with_experts(approximation.experts_used)?;
        asked.skip_cold = approximation.skip_cold;
    }
    let decision = known.decide(&asked)?;
    let price = prices::said(&known.spec, &known.files.paths[0], &decision);
    check_skip(&decision, args.workers.is_used())?;
    let helped = Helped::ask(args, runtime, &known, (&asked, &decision))?;
    let width = width_of(columns);
    let text = match (global.json, &helped) {
        (true, None) => decision.to_json()?,
        (true, Some(helped)) => {
            serde_json::to_string_pretty(&json!({ "plan": decision, "workers": helped }))?
        }
        (false, None) => render(&decision, price.as_deref(), width),
        (false, Some(helped)) => {
            render(&decision, price.as_deref(), width) + "\n" + &facts(&helped.facts(), width)
        }
    };
    print(global.json, &text)
}

/// The strongest approximation whose price is accepted.
fn accepted(known: &Known, kl: f64, asked: &Asked) -> Result<Approximation> {
    let as_it_is = known.decide(asked)?;
    let path = &known.files.paths[0];
    let kept = prices::find(&known.spec, path);
    Ok(prices::accepted(kept.as_ref(), kl, &as_it_is, path)?.approximation)
}

fn render(plan: &Decision, price: Option<&str>, width: u16) -> String {
    let title = format!(" {} on {}", printable(&plan.model.name), plan.machine);
    let parts = [
        title,
        facts(&head(plan), width),
        placement(plan, width),
        speeds(plan, width),
        terms(plan, width),
        facts(&settings(plan, price), width),
    ];
    parts.join("\n")
}

/// Where experts live, in words.
pub(crate) fn regime(plan: &Decision) -> String {
    let held = plan.placement.ram_slots() + plan.placement.gpu_slots();
    let held = held.min(plan.placement.experts);
    let experts = plan.placement.experts;
    match plan.placement.regime {
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
    }
}

fn head(plan: &Decision) -> Vec<Fact> {
    let goal = format!("{:?}", plan.goal).to_lowercase();
    let least = format!(
        "{} works, {} holds every expert",
        format_bytes(plan.budget.smallest_bytes()),
        format_bytes(plan.budget.largest_sensible_bytes())
    );
    vec![
        ("Goal", goal),
        ("Regime", regime(plan)),
        ("Memory", plan.why.memory.clone()),
        ("", least),
        ("Devices", plan.why.devices.clone()),
        ("Costs", plan.costs.clone()),
    ]
}

fn placement(plan: &Decision, width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    rows.set_header(["Device", "Dense", "KV", "Other", "Experts", "Slots", "Of"]);
    for holding in &plan.placement.holdings {
        rows.add_row([
            holding.device.clone(),
            format_bytes(holding.dense_bytes),
            format_bytes(holding.kv_bytes),
            format_bytes(holding.other_bytes),
            format_bytes(holding.expert_bytes),
            holding.expert_slots.to_string(),
            format_bytes(holding.room_bytes),
        ]);
    }
    align_right(&mut rows, &[1, 2, 3, 4, 5, 6]);
    rows.trim_fmt()
}

fn speeds(plan: &Decision, width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    let prefill = format!("prefill {}", plan.prefill.tokens);
    rows.set_header(["Expected".to_owned(), prefill, "decode".to_owned()]);
    let mut row = |what: &str, of: &dyn Fn(&Prediction) -> String| {
        rows.add_row([what.to_owned(), of(&plan.prefill), of(&plan.decode)]);
    };
    row("tokens per second", &|p| number(p.tokens_per_s));
    row("bound by", &|p| p.bound_by.name().to_owned());
    row("experts found in memory", &|p| percent(p.hit_rate));
    row("read from disk per token", &|p| format_bytes(p.disk_bytes_per_token as u64));
    row("read from memory per token", &|p| format_bytes(p.memory_bytes_per_token as u64));
    row("joules per token", &|p| p.joules_per_token.map_or("unknown".to_owned(), number));
    align_right(&mut rows, &[1, 2]);
    rows.trim_fmt()
}

fn terms(plan: &Decision, width: u16) -> String {
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

fn settings(plan: &Decision, price: Option<&str>) -> Vec<Fact> {
    let session = plan.session;
    let chunk = format!("{} tokens ({})", session.chunk_tokens, plan.why.chunk);
    let context = format!("{} tokens ({})", session.context_tokens, plan.why.context);
    let mut all = vec![
        ("Loading", plan.why.loading.clone()),
        ("Rules", plan.why.rules.clone()),
        ("Chunk", chunk),
        ("Context", context),
        ("Cache", plan.why.kv.clone()),
        ("Threads", plan.why.threads.clone()),
        ("Exact", plan.why.exact.clone()),
    ];
    all.extend(plan.why.kernels.iter().map(|said| ("Kernels", said.clone())));
    all.extend(plan.why.approximate.iter().map(|said| ("Approximate", said.clone())));
    all.extend(price.map(|price| ("", price.to_owned())));
    all.extend(plan.why.nodes.iter().map(|said| ("Nodes", said.clone())));
    all.extend(plan.assumed.iter().map(|note| ("Assumed", note.clone())));
    all
}
