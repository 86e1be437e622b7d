//! Plans for this machine as commands use them: with the costs measured here where there are any,
//! and plans read from files. Gathers; every choice is `motley_plan`'s.

use anyhow::{Context, Result, ensure};
use motley_calibrate::library;
use motley_cost::calibration::{Calibration as Table, WeightLayout};
use motley_engine::machine_memory;
use motley_machine::Machine;
use motley_model::{ModelSpec, Sizes};
use motley_plan::cores::Freedom;
use motley_plan::{Budget, Calibration, Goal, Inputs, Plan, SessionShape, plan};
use std::path::Path;

/// This machine, measured.
pub(crate) struct Here {
    table: Table,
}

impl Here {
    /// The newest calibration made on this machine, if there is one.
    pub(crate) fn find() -> Option<Self> {
        library::of_this_machine().map(|(_, table)| Self { table })
    }

    /// Its description.
    pub(crate) fn machine(&self) -> &Machine {
        &self.table.machine
    }

    /// Its costs for a model of which `memory_bytes` may be in memory: experts that are streamed
    /// keep the file's layout, others are rearranged.
    pub(crate) fn costs(
        &self,
        budget: &Budget,
        memory_bytes: u64,
        threads: Option<u32>,
    ) -> Result<Calibration> {
        let all = budget.slots(memory_bytes).is_ok_and(|slots| slots >= budget.experts);
        let layout = if all { WeightLayout::Rearranged } else { WeightLayout::Plain };
        let threads = threads.unwrap_or(self.table.provenance.cores);
        Ok(Calibration::measured(&self.table, layout, threads)?)
    }
}

/// What a plan is wanted for.
pub(crate) struct Wanted {
    pub(crate) memory_bytes: u64,
    pub(crate) context_tokens: u32,
    pub(crate) chunk_tokens: u32,
    pub(crate) prompt_tokens: u32,
    pub(crate) threads: Option<u32>,
}

/// The plan of these settings on this machine; `None` when it is not calibrated or too small.
pub(crate) fn expected(spec: &ModelSpec, wanted: &Wanted) -> Option<Plan> {
    let here = Here::find()?;
    let Wanted { context_tokens, chunk_tokens, .. } = *wanted;
    let budget = Budget::of(spec, SessionShape { context_tokens, chunk_tokens });
    let calibration = here.costs(&budget, wanted.memory_bytes, wanted.threads).ok()?;
    let inputs = Inputs {
        spec,
        machine: here.machine(),
        calibration: &calibration,
        profile: None,
        goal: Goal::Speed,
        memory_bytes: wanted.memory_bytes,
        context_tokens,
        chunk_tokens: Some(chunk_tokens),
        prompt_tokens: wanted.prompt_tokens,
        freedom: Freedom::Threads,
    };
    plan(&inputs).ok()
}

/// Memory that holds everything, or all the machine has.
pub(crate) fn everything(spec: &ModelSpec, shape: SessionShape) -> u64 {
    let all = Budget::of(spec, shape).largest_sensible_bytes();
    machine_memory().map_or(all, |memory| memory.total_bytes.max(all))
}

/// Reads a plan and checks that it was made for this model.
pub(crate) fn read(path: &Path, spec: &ModelSpec) -> Result<Plan> {
    let shown = || format!("cannot use the plan {}", path.display());
    let text = std::fs::read_to_string(path).with_context(shown)?;
    let plan = Plan::from_json(&text).with_context(shown)?;
    let experts = spec.expert_layers().count() as u32 * spec.experts;
    ensure!(
        plan.budget.experts == experts,
        "{} was made for {} with {} experts, but this model has {experts} ({} bytes); make a \
         plan for it with `motley plan MODEL --json`",
        path.display(),
        plan.model,
        plan.budget.experts,
        Sizes::of(spec).total_bytes,
    );
    Ok(plan)
}
