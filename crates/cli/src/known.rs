//! Facts for a decision, gathered: the model's header, this machine or a described one, what was
//! measured, tuned and recorded here. Gathers; every choice is `motley_plan::decide`'s.

use crate::args::{Global, TrustArgs};
use crate::check_file;
use crate::page::progress_target;
use crate::terminal::note;
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use motley_calibrate::describe::this_machine;
use motley_calibrate::library;
use motley_calibrate::measure::quick::{QUICK_BUDGET, QuickOptions, quick};
use motley_calibrate::tuning::{Subject, Threads, newest};
use motley_cost::calibration::CalibrationFile;
#[cfg(feature = "npu")]
use motley_cost::{ComputeCost, calibration::WeightLayout};
use motley_engine::threads::cores::machine_cores;

use motley_engine::{
    GpuDevice, MachineCores, Runtime, Seam, ThreadSet, ThreadSets, gpu_devices, machine_memory,
    offered_layouts,
};
use motley_machine::Machine;
use motley_model::{ModelFiles, ModelSpec, Sizes};
use motley_plan::decide::facts::{described_gpus, described_memory};
use motley_plan::decide::rules::check_profile;
use motley_plan::decide::workers::workers_pay;
use motley_plan::headroom::device_room;
use motley_plan::hosts::{Others, RemoteAdvice};
use motley_plan::{
    Asked, Decision, Facts, GpuFact, MachineMemory, ModelNeeds, OfferedLayouts, decide,
};
#[cfg(feature = "npu")]
use motley_plan::{Calibration, ExpertCosts, MeasuredKernels, PathRate};
use motley_profile::Profile;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A model and a machine, as far as they are known.
pub(crate) struct Known {
    pub(crate) spec: ModelSpec,
    pub(crate) files: ModelFiles,
    pub(crate) profile: Option<Profile>,
    pub(crate) measured: Option<CalibrationFile>,
    pub(crate) machine: Machine,
    needs: ModelNeeds,
    memory: Option<MachineMemory>,
    gpus: Vec<GpuFact>,
    cores: MachineCores,
    tuned: Option<ThreadSets>,
    layouts: Vec<OfferedLayouts>,
}

impl Known {
    /// The model at `path` on this machine.
    pub(crate) fn here(runtime: &Runtime, path: &Path) -> Result<Self> {
        let (spec, files) = ModelSpec::open(path)?;
        Ok(Self::on_this_machine(runtime, path, spec, files))
    }

    /// A model on this machine, whose header is known; `path` is where it lies, or will.
    pub(crate) fn on_this_machine(
        runtime: &Runtime,
        path: &Path,
        spec: ModelSpec,
        files: ModelFiles,
    ) -> Self {
        let measured = library::for_model(&spec).map(|(_, table)| table);
        let machine = match &measured {
            Some(table) => table.machine.clone(),
            None => this_machine(runtime, path.ancestors().find(|place| place.exists())),
        };
        Self {
            needs: ModelNeeds::of(&spec),
            profile: profile_of(path, &spec),
            machine,
            measured,
            memory: machine_memory(),
            gpus: gpus(runtime),
            cores: machine_cores(),
            tuned: tuned(&spec),
            layouts: offered_layouts(runtime, &spec),
            spec,
            files,
        }
    }

    /// As [`Known::here`], for whoever goes on to compute with the model: a file not seen before is
    /// tried by a child first.
    pub(crate) fn to_run(
        runtime: &Runtime,
        global: &Global,
        path: &Path,
        trust: TrustArgs,
    ) -> Result<Self> {
        let known = Self::here(runtime, path)?;
        if !trust.trust_file {
            check_file::check(global, &known.spec, &known.files)?;
        }
        Ok(known)
    }

    /// The model at `path` on a machine that is described.
    pub(crate) fn described(machine: Machine, path: &Path) -> Result<Self> {
        let (spec, files) = ModelSpec::open(path)?;
        Ok(Self {
            needs: ModelNeeds::of(&spec),
            profile: profile_of(path, &spec),
            measured: None,
            memory: described_memory(&machine),
            gpus: described_gpus(&machine),
            cores: MachineCores::described(&machine),
            tuned: None,
            layouts: Vec::new(),
            machine,
            spec,
            files,
        })
    }

    /// The same with so many experts per token, where a number is given.
    pub(crate) fn with_experts(self, used: Option<u32>) -> Result<Self> {
        let (spec, files) = self.spec.with_experts_used(self.files, used)?;
        Ok(Self { needs: ModelNeeds::of(&spec), spec, files, ..self })
    }

    /// Measures for five seconds what this model's experts cost here, if nobody ever has: the first
    /// run of such a model on a machine (H4). Says so in one line; a program that reads JSON, and
    /// an automated test (`CI`), are never made to wait.
    pub(crate) fn measure_once(&mut self, runtime: &Runtime, global: &Global) -> Result<()> {
        let automated = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        if self.measured.is_some() || global.json || automated || !self.spec.is_moe() {
            return Ok(());
        }
        let options = QuickOptions {
            budget: QUICK_BUDGET,
            threads: None,
            file: self.files.paths[0].clone(),
            program: format!("motley {}", env!("CARGO_PKG_VERSION")),
        };
        let bar = measuring_bar();
        let table = quick(runtime, &self.spec, &options, &mut |what, share| {
            bar.set_message(what.to_owned());
            bar.set_position((share * 1000.0) as u64);
        });
        bar.finish_and_clear();
        let table = table.context("cannot measure this machine; `CI=1` leaves that out")?;
        let took_s = table.provenance.took_s;
        match library::folder().and_then(|folder| library::save(&folder, &table)) {
            Ok(kept) => note(&format!(
                "first run of this model here: measured the machine for {took_s:.1} s, kept in {} \
                 (`motley calibrate` measures better)",
                kept.display()
            )),
            Err(error) => tracing::warn!(
                "measured the machine for {took_s:.1} s, and will again at the next run, because \
                 it cannot be kept: {:#}; MOTLEY_CONFIG names another folder",
                anyhow::Error::from(error)
            ),
        }
        self.machine = table.machine.clone();
        self.measured = Some(table);
        Ok(())
    }

    /// Memory a run may use here; `None` where the system does not say.
    pub(crate) fn room_bytes(&self) -> Option<u64> {
        self.memory.map(|memory| memory.room_bytes())
    }

    /// Leaves so much of the memory to other models.
    pub(crate) fn set_aside(&mut self, others_bytes: u64) {
        if let Some(memory) = &mut self.memory {
            memory.others_bytes = others_bytes;
        }
    }

    /// What comes of `asked`.
    pub(crate) fn decide(&self, asked: &Asked) -> Result<Decision> {
        let decision = self.with_facts(asked, |facts| decide(facts, asked))?;
        tracing::debug!("decided: {}", serde_json::to_string(&decision)?);
        Ok(decision)
    }

    /// Whether other machines pay beside `decision`, which came of `asked`.
    pub(crate) fn workers_pay(
        &self,
        asked: &Asked,
        decision: &Decision,
        others: Others<'_>,
    ) -> Result<RemoteAdvice> {
        Ok(self.with_facts(asked, |facts| workers_pay(facts, asked, decision, others))?)
    }

    fn with_facts<T>(&self, asked: &Asked, use_them: impl FnOnce(&Facts<'_>) -> T) -> T {
        // What passes cost is known for the processor and threads they were measured on.
        let (cpu, cores) = match &self.measured {
            Some(table) => (table.provenance.cpu.as_str(), table.provenance.cores),
            None => ("", 0),
        };
        let threads = asked.threads.unwrap_or(cores);
        let profile = self.profile.clone().map(|profile| profile.at_home(cpu, threads));
        let facts = Facts {
            model: &self.needs,
            machine: &self.machine,
            measured: self.measured.as_ref(),
            profile: profile.as_ref(),
            memory: self.memory,
            gpus: &self.gpus,
            cores: &self.cores,
            tuned: self.tuned.as_ref(),
            layouts: &self.layouts,
        };
        use_them(&facts)
    }

    /// One expert on the CPU with so many threads, and reading one from disk, in microseconds;
    /// `None` where nobody measured.
    #[cfg(feature = "npu")]
    pub(crate) fn expert_on_cpu(&self, threads: u32) -> Option<(ComputeCost, f64)> {
        let (table, demand) = (self.measured.as_ref()?, &self.needs.demand);
        let width = demand.expert_matrix_weights();
        let plain = MeasuredKernels::laid_out(&|_| WeightLayout::Plain);
        let calibration = Calibration::measured(table, &plain, threads, width).ok()?;
        let read = calibration.disk.as_ref().map(PathRate::cost);
        let read_us = read.map_or(0.0, |read| read.us(self.needs.expert_bytes));
        Some((ExpertCosts::of(&calibration, demand).cpu, read_us))
    }

    /// A decision that was written down, if it is for this model.
    pub(crate) fn read_plan(&self, path: &Path) -> Result<Decision> {
        let shown = || format!("cannot use the plan {}", path.display());
        let text = std::fs::read_to_string(path).with_context(shown)?;
        let plan = Decision::from_json(&text).with_context(shown)?;
        let (found, wanted) = (&plan.model, &self.needs);
        ensure!(
            (found.experts, found.total_bytes) == (wanted.experts, wanted.total_bytes),
            "{} was made for {} ({} experts, {} bytes), but this model has {} experts and {} \
             bytes; make a plan for it with `motley plan MODEL --json`",
            path.display(),
            found.name,
            found.experts,
            found.total_bytes,
            wanted.experts,
            wanted.total_bytes,
        );
        tracing::debug!("decided: {}", serde_json::to_string(&plan)?);
        Ok(plan)
    }
}

/// Memory a run may use here, RAM and that of GPUs; `None` where the system does not say.
pub(crate) fn room_bytes(runtime: &Runtime) -> Option<u64> {
    let own =
        |gpu: &GpuDevice| if gpu.has_own_memory() { device_room(gpu.free_bytes()) } else { 0 };
    let gpus: u64 = gpu_devices(runtime).iter().map(own).sum();
    Some(machine_memory()?.room_bytes().saturating_add(gpus))
}

fn measuring_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("measuring {wide_bar} {msg}")
        .expect("the template is a constant");
    ProgressBar::with_draw_target(Some(1000), progress_target(false)).with_style(style)
}

/// Name of the machine Motley runs on.
pub(crate) const THIS: &str = "this";

/// The machine called `name`: a ready one, a file, or this one. This one is as measured, else as
/// the system describes it, with the disk that holds `path` and assumed rates.
pub(crate) fn machine(name: &str, path: Option<&Path>) -> Result<Machine> {
    if name != THIS {
        return Ok(motley_machine::find(name)?);
    }
    match library::of_this_machine() {
        Some((_, table)) => Ok(table.machine),
        None => Ok(this_machine(&Runtime::start(Seam::Registered)?, path)),
    }
}

/// The name of the device that stands in for a GPU.
pub(crate) const STAND_IN: &str = "stand-in";

/// GPUs of this machine, and the CPU as a stand-in for those who name it.
fn gpus(runtime: &Runtime) -> Vec<GpuFact> {
    let fact = |gpu: &GpuDevice| GpuFact {
        name: gpu.info().name.clone(),
        free_bytes: gpu.free_bytes(),
        own_memory: gpu.has_own_memory(),
        stands_in: false,
    };
    let stand_in =
        GpuFact { name: STAND_IN.into(), free_bytes: 0, own_memory: true, stands_in: true };
    gpu_devices(runtime).iter().map(fact).chain([stand_in]).collect()
}

/// What a tuning of this model on this machine is kept under.
pub(crate) fn subject(spec: &ModelSpec) -> Subject {
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    Subject::here(name, Sizes::of(spec).total_bytes)
}

/// The cores `motley tune` chose for this model here, where it has.
fn tuned(spec: &ModelSpec) -> Option<ThreadSets> {
    let found = newest(&library::known_folder()?, &subject(spec))?;
    let set = |threads: Threads| ThreadSet { threads: threads.threads, cpus: threads.cpus };
    Some(ThreadSets { prefill: set(found.prefill), decode: set(found.decode) })
}

/// The newest routing profile kept for this model, if there is one that can be read.
pub(crate) fn profile_of(path: &Path, spec: &ModelSpec) -> Option<Profile> {
    let model = model_name(spec, path);
    let stem = profile_stem(&model);
    // Names end in the moment they were made.
    let found = library::kept(&library::known_folder()?.join(PROFILES), "jsonl");
    let own = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem))
    };
    let fits = |profile: &Profile| {
        let header = &profile.header;
        let shape = (u32::from(header.experts), u32::from(header.layers));
        header.model == model && shape == (spec.experts, spec.layers.len() as u32)
    };
    let readable = |path: &PathBuf| {
        let again = "motley calibrate MODEL --text FILE";
        let skipped = |error: &anyhow::Error| library::warn_passed_over(error.as_ref(), again);
        read_profile(path).inspect_err(skipped).ok()
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
    let profile = Profile::read(BufReader::new(file)).with_context(shown)?;
    check_profile(&profile).with_context(shown)?;
    Ok(profile)
}
