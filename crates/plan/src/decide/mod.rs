//! One decision from facts and wishes: what `motley plan` shows, `run`, `serve`, `bench` and the
//! others execute, and `sim` simulates. Pure: the same facts and wishes give the same decision.
//!
//! ```text
//!   Facts (model, machine, costs, profile, memory, GPUs, cores) ─┐
//!                                                                ├─▶ decide ─▶ Decision
//!   Asked (flags, as typed) ─────────────────────────────────────┘            with its reasons
//! ```
//!
//! - [`facts`]: what is known.
//! - [`asked`]: what is wanted.
//! - [`parse`]: the same as people write it.
//! - `devices`: which GPUs, for what.
//! - `attempt`: one way to run the model.
//! - `search`: chunks, budgets and lengths of the context, compared by attempts.
//! - `context`: how long the KV cache is when nobody says; `kv`: what it is kept in.
//! - [`rules`]: who decides about experts.
//! - `reasons`: why, in words.
//! - [`decision`]: the result.
//! - [`error`]: wishes that cannot be obeyed.
//! - [`hosted`]: the same for a model that another program loads.
//! - [`workers`]: whether other machines pay beside a decision.

use motley_cost::PowerHeuristic;
use motley_cost::calibration::WeightLayout;
use motley_sched::Costs;
use motley_sched::regime::KnownCosts;

pub mod asked;
mod attempt;
mod context;
pub mod decision;
mod devices;
pub mod error;
pub mod facts;
pub mod hosted;
mod kv;
pub mod parse;
mod reasons;
pub mod rules;
mod search;
pub mod workers;

use crate::calibration::Calibration;
use crate::cores::nodes::node_shares;
use crate::cores::{Aecs, CoreSet, Measurement, Objective, ThreadSet, ThreadSets, carry_out};
use crate::device_use::DeviceUse;
use crate::expert_costs::ExpertCosts;
use asked::{Asked, Goal, Loading};
use attempt::{Attempt, costs};
use decision::{Decision, DeviceShare, FORMAT_VERSION, ModelId};
use devices::{Candidate, candidates};
use error::DecideError;
use facts::Facts;

/// Decides.
pub fn decide(facts: &Facts<'_>, asked: &Asked) -> Result<Decision, DecideError> {
    if asked.loading == Some(Loading::Mapped) && asked.memory_bytes.is_some() {
        return Err(DecideError::MappedWithin);
    }
    let candidates = candidates(facts, asked)?;
    let attempt = kv::choose(facts, asked, &candidates)?;
    let calibration = attempt.calibration(facts, asked)?;
    let (threads, cores) = threads(facts, asked);
    let busy_w = busy_w(facts, &attempt, &calibration, &cores);
    let (prefill, decode) = attempt.predict(facts, asked, &calibration, busy_w);
    let ruled = rules::rules(facts, asked, &attempt)?;
    let kernels = attempt.kernels(facts, asked);
    // Threads take whole experts only in blocks, and memory has a node only where it is ours.
    let divides = attempt.lays_out(facts, asked) && kernels.has_blocks();
    let nodes = if divides { node_shares(&facts.cores.nodes, &threads) } else { Vec::new() };
    Ok(Decision {
        version: FORMAT_VERSION,
        model: ModelId {
            name: facts.model.name.clone(),
            total_bytes: facts.model.total_bytes,
            experts: facts.model.experts,
        },
        machine: facts.machine.name.clone(),
        costs: calibration.source.clone(),
        costs_measured: calibration.measured,
        goal: asked.goal,
        loading: attempt.residence.loading,
        memory_bytes: attempt.residence.memory_bytes,
        budget: attempt.budget,
        device_use: attempt.device_use,
        devices: device_shares(&attempt),
        why: reasons::why(facts, asked, &attempt, (&threads, &nodes), &ruled),
        assumed: reasons::assumed(facts, asked, &attempt, &calibration),
        threads,
        nodes,
        session: attempt.session,
        longest_tokens: context::longest(facts, asked),
        rules: ruled.rules,
        expert_costs: expert_costs(facts, asked, &attempt)?,
        kernels,
        exact: asked.exact,
        experts_used: facts.model.fewer_of.map(|_| facts.model.demand.used),
        prefill,
        decode,
        placement: attempt.placement,
    })
}

/// As asked; else as `tune` measured; else every core. Under the goal `energy`, before `tune` has
/// measured, what the bandwidth of fewer cores allows. With the cores that decode, for what they
/// draw.
fn threads(facts: &Facts<'_>, asked: &Asked) -> (ThreadSets, CoreSet) {
    let all = facts.cores.pool.all_considered();
    let every = ThreadSets::both(ThreadSet::anywhere(facts.cores.cpus_in_all));
    match (asked.threads, facts.tuned) {
        (Some(threads), _) => (ThreadSets::both(ThreadSet::anywhere(threads)), all),
        (None, Some(tuned)) => (tuned.clone(), all),
        (None, None) if asked.goal == Goal::Energy => cheapest(facts).unwrap_or((every, all)),
        (None, None) => (every, all),
    }
}

fn cheapest(facts: &Facts<'_>) -> Option<(ThreadSets, CoreSet)> {
    let rates = &facts.measured?.memory;
    let speed = |set: &CoreSet| {
        let fits = rates.iter().filter(|rate| rate.threads <= set.cores());
        let tokens_per_s = fits.map(|rate| rate.gb_per_s).fold(0.0, f64::max);
        Measurement { tokens_per_s, joules_per_token: None }
    };
    let pool = facts.cores.pool.clone();
    let prefill = facts.cores.threads(&pool.all_considered());
    let mut search = Aecs::new(pool, facts.machine.power, Objective::default());
    let found = carry_out(&mut search, speed)?;
    let decode = facts.cores.threads(&found.chosen);
    Some((ThreadSets { prefill, decode }, found.chosen))
}

fn device_shares(attempt: &Attempt<'_>) -> Vec<DeviceShare> {
    if attempt.device_use == DeviceUse::Nothing {
        return Vec::new();
    }
    let all: u64 = attempt.for_weights.iter().sum();
    let experts = attempt.device_use.expert_bytes(&attempt.budget);
    let share = |(candidate, &room): (&Candidate<'_>, &u64)| {
        let bytes = u128::from(experts) * u128::from(room) / u128::from(all.max(1));
        // Beside dense weights only the device knows what is left.
        let unknown = matches!(attempt.device_use, DeviceUse::DenseAndExperts { .. })
            && candidate.most_bytes.is_none();
        DeviceShare {
            name: candidate.fact.name.clone(),
            part: room as f64 / all.max(1) as f64,
            expert_bytes: (!unknown).then_some(bytes as u64),
            stands_in: candidate.fact.stands_in,
        }
    };
    attempt.candidates.iter().zip(&attempt.for_weights).map(share).collect()
}

/// What H1 decides with, where devices share experts.
fn expert_costs(
    facts: &Facts<'_>,
    asked: &Asked,
    attempt: &Attempt<'_>,
) -> Result<Option<Costs>, DecideError> {
    if !attempt.device_use.has_some_experts() {
        return Ok(None);
    }
    let calibration = costs(facts, asked, &|_| WeightLayout::Plain)?;
    let ExpertCosts { cpu, gpu: device, link } = ExpertCosts::of(&calibration, &facts.model.demand);
    let known = KnownCosts { cpu: Some(cpu), device, link };
    Ok(Some(known.hybrid(facts.model.expert_bytes)))
}

/// Measured draw, else the machine's, else the heuristic where its coefficients are described.
fn busy_w(
    facts: &Facts<'_>,
    attempt: &Attempt<'_>,
    calibration: &Calibration,
    cores: &CoreSet,
) -> Option<f64> {
    let gpu = calibration.gpu.as_ref().filter(|_| attempt.placement.dense_on_gpu);
    let unit = gpu.unwrap_or(&calibration.cpu);
    let heuristic = || {
        let power = facts.machine.power?;
        let clusters = &facts.machine.clusters;
        let same = clusters.len() == cores.per_cluster.len();
        same.then(|| PowerHeuristic::new(clusters, Some(power)).watts(&cores.per_cluster))
    };
    unit.busy_w.or_else(heuristic)
}
