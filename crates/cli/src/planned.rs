//! Plans for this machine as commands use them: with the costs measured here where there are any,
//! and plans read from files. Gathers; every choice is `motley_plan`'s.

use anyhow::{Context, Result, ensure};
use motley_calibrate::describe::this_machine;
use motley_calibrate::library;
use motley_cost::calibration::{Calibration as Table, WeightLayout};
use motley_engine::{Runtime, Seam, machine_memory};
use motley_machine::Machine;
use motley_model::{ModelSpec, Sizes};
use motley_plan::cores::Freedom;
use motley_plan::plan::CHUNKS;
use motley_plan::{Budget, Calibration, Demand, Goal, Inputs, Plan, SessionShape, plan};
use motley_profile::Profile;
use std::fs::File;
use std::io::BufReader;
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

    /// The processor.
    pub(crate) fn cpu(&self) -> &str {
        &self.table.provenance.cpu
    }

    /// Threads a run uses unless told.
    pub(crate) fn cores(&self) -> u32 {
        self.table.provenance.cores
    }

    /// Time of one expert of `spec` in a layout, by its tokens.
    pub(crate) fn expert_us(
        &self,
        spec: &ModelSpec,
        layout: WeightLayout,
        threads: u32,
    ) -> Option<impl Fn(f64) -> f64 + use<>> {
        let demand = Demand::of(spec);
        let costs = self.measured(&demand, layout, threads).ok()?;
        Some(move |tokens| costs.cpu.us(&demand.expert_matrices(), tokens))
    }

    /// Its costs for a model of which `memory_bytes` may be in memory: experts that are streamed
    /// keep the file's layout, others are rearranged.
    pub(crate) fn costs(
        &self,
        spec: &ModelSpec,
        budget: &Budget,
        memory_bytes: u64,
        threads: Option<u32>,
    ) -> Result<Calibration> {
        let all = budget.slots(memory_bytes).is_ok_and(|slots| slots >= budget.experts);
        let layout = if all { WeightLayout::Rearranged } else { WeightLayout::Plain };
        let threads = threads.unwrap_or(self.cores());
        self.measured(&Demand::of(spec), layout, threads)
    }

    /// Its costs for experts in the file's layout.
    pub(crate) fn plain_costs(
        &self,
        spec: &ModelSpec,
        threads: Option<u32>,
    ) -> Result<Calibration> {
        self.measured(&Demand::of(spec), WeightLayout::Plain, threads.unwrap_or(self.cores()))
    }

    /// The routing kept for a model, with what its passes cost on these threads.
    pub(crate) fn profile_of(
        &self,
        path: &Path,
        spec: &ModelSpec,
        threads: Option<u32>,
    ) -> Option<Profile> {
        let profile = profile_of(path, spec)?;
        Some(profile.at_home(self.cpu(), threads.unwrap_or(self.cores())))
    }

    fn measured(&self, demand: &Demand, layout: WeightLayout, threads: u32) -> Result<Calibration> {
        let width = demand.expert_matrix_weights();
        Ok(Calibration::measured(&self.table, layout, threads, width)?)
    }
}

/// Name of the machine this runs on.
pub(crate) const THIS: &str = "this";

/// The machine called `name`: a ready one, a file, or this one. This one is as measured, else as
/// the system describes it, with the disk that holds `path` and assumed rates.
pub(crate) fn machine(name: &str, path: Option<&Path>) -> Result<Machine> {
    if name != THIS {
        return Ok(motley_machine::find(name)?);
    }
    match Here::find() {
        Some(here) => Ok(here.table.machine),
        None => Ok(this_machine(&Runtime::start(Seam::Registered)?, path)),
    }
}

/// What a plan is wanted for.
pub(crate) struct Wanted {
    pub(crate) memory_bytes: u64,
    pub(crate) context_tokens: u32,
    /// `None` for the fastest.
    pub(crate) chunk_tokens: Option<u32>,
    pub(crate) prompt_tokens: u32,
    pub(crate) threads: Option<u32>,
}

/// The plan of these settings on this machine; `None` when it is not calibrated or too small.
pub(crate) fn expected(path: &Path, spec: &ModelSpec, wanted: &Wanted) -> Option<Plan> {
    let here = Here::find()?;
    let Wanted { context_tokens, chunk_tokens, .. } = *wanted;
    let usual = chunk_tokens.unwrap_or(CHUNKS[0]);
    let budget =
        Budget::of(spec, SessionShape { context_tokens, chunk_tokens: usual, output_tokens: 1 });
    let calibration = here.costs(spec, &budget, wanted.memory_bytes, wanted.threads).ok()?;
    let profile = here.profile_of(path, spec, wanted.threads);
    let inputs = Inputs {
        spec,
        machine: here.machine(),
        calibration: &calibration,
        profile: profile.as_ref(),
        goal: Goal::Speed,
        memory_bytes: wanted.memory_bytes,
        context_tokens,
        chunk_tokens,
        prompt_tokens: wanted.prompt_tokens,
        freedom: Freedom::Threads,
    };
    plan(&inputs).ok()
}

/// The newest routing profile kept for this model, if there is one that can be read.
pub(crate) fn profile_of(path: &Path, spec: &ModelSpec) -> Option<Profile> {
    let folder = library::folder().ok()?.join(PROFILES);
    let model = model_name(spec, path);
    let stem = profile_stem(&model);
    let mut found: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).collect();
    // Names end in the moment they were made.
    found.sort();
    let own = |path: &&std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem))
    };
    let fits = |profile: &Profile| {
        let header = &profile.header;
        let shape = (u32::from(header.experts), u32::from(header.layers));
        header.model == model && shape == (spec.experts, spec.layers.len() as u32)
    };
    let readable = |path: &std::path::PathBuf| {
        let told = |error: &anyhow::Error| tracing::warn!("a profile is passed over: {error:#}");
        read_profile(path).inspect_err(told).ok()
    };
    found.iter().rev().filter(own).filter_map(readable).find(fits)
}

/// What the model calls itself, else its file's name.
pub(crate) fn model_name(spec: &ModelSpec, path: &Path) -> String {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    spec.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(stem)
}

/// Folder of kept profiles.
pub(crate) const PROFILES: &str = "profiles";

/// A model's name as part of a file's.
pub(crate) fn profile_stem(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    model.chars().take(64).map(plain).collect()
}

/// Reads a routing profile.
pub(crate) fn read_profile(path: &Path) -> Result<Profile> {
    let shown = || path.display().to_string();
    let file = File::open(path).with_context(shown)?;
    Profile::read(BufReader::new(file)).with_context(shown)
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
