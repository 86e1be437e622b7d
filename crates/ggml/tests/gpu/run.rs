//! A short prompt and a few tokens through one model, with some experts on units and the
//! CPU computing the others at the same time.

use motley_ggml::gpu::{
    ComputeLane, CopyLane, GpuBlock, GpuDevice, GpuExpert, GpuOptions, GpuRow, GpuUnit,
};
use motley_ggml::{
    Batch, BatchToken, BlockError, BlockExecutor, Claims, ComputeOutcome, Context, ContextOptions,
    CpuUnit, ExpertBlock, Model, ModelOptions, PoolChoice, Pools, Runtime, Seam, Threadpool,
    ThreadpoolOptions, Way, Weights,
};
use motley_model::ModelSpec;
use motley_model::gguf::GgmlType;
use motley_store::{MappedExperts, MappedFiles};
use motley_testkit::synth::{Arch, Preset, Request};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const PROMPT: std::ops::Range<i32> = 100..120;
const DECODED: [i32; 3] = [7, 42, 9];

/// A model and its experts' bytes.
pub(crate) struct TestModel {
    pub(crate) spec: ModelSpec,
    pub(crate) mapped: MappedExperts,
    model: Arc<Model>,
}

/// A test model of this architecture; `None` when it cannot be made here.
pub(crate) fn model(arch: Arch) -> Option<TestModel> {
    model_of(Request::of_preset(Preset::Test(arch)))
}

/// The same with weights of 32 bits.
pub(crate) fn f32_model(arch: Arch) -> Option<TestModel> {
    model_of(Request { quant: GgmlType::F32, ..Request::of_preset(Preset::Test(arch)) })
}

fn model_of(request: Request) -> Option<TestModel> {
    let path = motley_testkit::fixtures::synthetic_of(&request)?;
    let (spec, files) = ModelSpec::open(&path).expect("it reads");
    let bytes = MappedFiles::map(&files.opened).expect("it maps");
    let mapped = MappedExperts::new(&spec, bytes).expect("it is whole");
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    // Plain weights: rearranged ones have other last bits than the bytes of the file.
    let options =
        ModelOptions { repack: false, gpus: Vec::new(), gpu_layers: 0, gpu_experts: false };
    let model = Model::load(runtime, Weights::Bare(path), &options, &mut |_| true);
    Some(TestModel { spec, mapped, model: Arc::new(model.expect("it loads")) })
}

impl TestModel {
    pub(crate) fn logits_of_cpu(&self) -> Vec<f32> {
        self.logits(Box::new(Whole))
    }

    /// Logits after the prompt and after each decoded token, one after the other.
    fn logits(&self, executor: Box<dyn BlockExecutor>) -> Vec<f32> {
        let pool = Arc::new(Threadpool::new(&ThreadpoolOptions::with_threads(1)).unwrap());
        let pools = Pools { decode: Arc::clone(&pool), prefill: pool };
        let shape = ContextOptions {
            context_tokens: 64,
            batch_tokens: 32,
            sequences: 1,
            unified: true,
            kv: motley_model::KvType::F16,
            windows: false,
            precise_attention: false,
            pooling: None,
        };
        let mut context =
            Context::new(Arc::clone(&self.model), &shape, pools, (executor, Claims::all()))
                .unwrap();
        let mut logits = Vec::new();
        let mut position = 0;
        let prompt: Vec<i32> = PROMPT.collect();
        for tokens in std::iter::once(&prompt[..]).chain(DECODED.chunks(1)) {
            let mut batch = Batch::with_capacity(tokens.len());
            for (nth, &token) in tokens.iter().enumerate() {
                let last = nth + 1 == tokens.len();
                batch.push(BatchToken { token, position, sequence: 0, logits: last });
                position += 1;
            }
            context.decode(&batch, PoolChoice::Prefill).expect("it runs");
            logits.extend_from_slice(context.logits(tokens.len() - 1).expect("asked for"));
        }
        logits
    }
}

/// What a trial is made of.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'m> {
    pub(crate) model: &'m TestModel,
    /// Of each layer's experts, how many may go to units.
    pub(crate) percent: u32,
    /// The layers units serve.
    pub(crate) is_served: fn(u32) -> bool,
    /// Of the first unit; each further one has half the budget of the one before.
    pub(crate) options: GpuOptions,
}

impl<'m> Setting<'m> {
    pub(crate) fn of(model: &'m TestModel, budget_bytes: u64) -> Self {
        let options = GpuOptions::within(budget_bytes, budget_bytes / 8);
        Self { model, percent: 50, is_served: |_| true, options }
    }
}

/// What came of it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Trial {
    pub(crate) logits: Vec<f32>,
    pub(crate) slots: Vec<u32>,
    pub(crate) blocks: usize,
    pub(crate) block_rows: usize,
    pub(crate) gpu_rows: usize,
    pub(crate) cpu_rows: usize,
    pub(crate) computations: usize,
    /// Distance of the units' rows from the CPU's, of the worst block.
    pub(crate) rows_apart: f32,
    pub(crate) refused: Option<String>,
}

/// Runs the model with a unit on each device.
pub(crate) fn trial(devices: &[GpuDevice], setting: Setting<'_>) -> Trial {
    let mut options = setting.options;
    let mut units = Vec::new();
    for device in devices {
        let (spec, is_served) = (&setting.model.spec, &setting.is_served);
        let unit = GpuUnit::of_layers(device, spec, is_served, &options).expect("it fits");
        assert!(unit.bytes() <= options.budget_bytes + (64 << 10), "{}", unit.bytes());
        let (copy, compute) = (unit.copy_lane().unwrap(), unit.compute_lane().unwrap());
        units.push(Lanes { unit, copy, compute });
        options.budget_bytes /= 2;
    }
    let slots = units.iter().map(|lanes| lanes.unit.slots()).collect();
    let counted = Arc::new(Mutex::new(Trial { slots, ..Trial::default() }));
    let executor = Split {
        units,
        mapped: setting.model.mapped.clone(),
        resident: HashMap::new(),
        experts: setting.model.spec.experts * setting.percent / 100,
        counted: Arc::clone(&counted),
    };
    let logits = setting.model.logits(Box::new(executor));
    let mut trial = counted.lock().unwrap().clone();
    trial.logits = logits;
    trial
}

struct Lanes {
    unit: GpuUnit,
    copy: CopyLane,
    compute: ComputeLane,
}

/// The first experts of every layer go to units, to whichever has a slot first.
struct Split {
    units: Vec<Lanes>,
    mapped: MappedExperts,
    resident: HashMap<(u32, u32), (usize, GpuExpert)>,
    experts: u32,
    counted: Arc<Mutex<Trial>>,
}

impl Split {
    /// The expert's slot, filled now if there is room.
    fn bring(&mut self, layer: u32, expert: u32) -> Option<(usize, GpuExpert)> {
        if let Some(there) = self.resident.get(&(layer, expert)) {
            return Some(there.clone());
        }
        let lease = |(index, lanes): (usize, &mut Lanes)| {
            let lease = lanes.unit.lease(layer)?;
            let parts = self.mapped.parts(layer, expert);
            Some((index, lanes.copy.fill(lease, parts).expect("all parts are there")))
        };
        let there = self.units.iter_mut().enumerate().find_map(lease)?;
        self.resident.insert((layer, expert), there.clone());
        Some(there)
    }
}

impl BlockExecutor for Split {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let mut on_unit: Vec<Vec<(usize, usize, GpuExpert)>> = vec![Vec::new(); self.units.len()];
        let mut on_cpu = Vec::new();
        for (token, slot) in
            (0..block.tokens()).flat_map(|t| (0..block.slots()).map(move |s| (t, s)))
        {
            let expert = block.expert(token, slot);
            let found =
                if expert < self.experts { self.bring(block.layer(), expert) } else { None };
            match found {
                Some((unit, expert)) => on_unit[unit].push((token, slot, expert)),
                None => on_cpu.push((token, slot)),
            }
        }
        let copied = GpuBlock::of(block).expect("every operation can be cloned");
        let gpu_rows: Vec<_> = on_unit.iter().flatten().map(|(t, s, _)| (*t, *s)).collect();
        cpu.compute_rows(block, &gpu_rows, Way::Whole).expect("rows of this block");
        let reference = outputs(block, &gpu_rows);
        let mut counted = self.counted.lock().unwrap();
        counted.blocks += 1;
        counted.block_rows += block.output_rows();
        let mut tasks = Vec::new();
        for (lanes, rows) in self.units.iter_mut().zip(&on_unit) {
            let gpu_row = |(token, slot, expert)| GpuRow { token, slot, expert };
            let rows: Vec<_> =
                rows.iter().map(|(t, s, expert)| gpu_row((*t, *s, expert))).collect();
            let prepared =
                lanes.unit.check(&copied).and_then(|()| lanes.unit.prepare(&copied, &rows));
            match prepared {
                Ok(task) => tasks.push((task, &mut lanes.compute)),
                Err(refused) => {
                    counted.refused = Some(refused.to_string());
                    on_cpu.extend(rows.iter().map(|row| (row.token, row.slot)));
                }
            }
        }
        counted.cpu_rows += on_cpu.len();
        let outcome = std::thread::scope(|scope| {
            for (task, lane) in &mut tasks {
                scope.spawn(|| assert_eq!(task.run(lane), ComputeOutcome::Done));
            }
            cpu.compute_rows(block, &on_cpu, Way::Whole).expect("rows of this block")
        });
        drop(on_unit);
        let idle = self.resident.values().all(|(_, expert)| expert.is_idle());
        assert!(idle, "a task that ran still holds a slot");
        for (task, _) in &tasks {
            task.scatter(block);
            counted.gpu_rows += task.rows();
            counted.computations += task.computations();
        }
        let found = outputs(block, &gpu_rows);
        counted.rows_apart = counted.rows_apart.max(apart(&reference, &found));
        Ok(outcome)
    }
}

fn outputs(block: &ExpertBlock<'_>, rows: &[(usize, usize)]) -> Vec<f32> {
    rows.iter().flat_map(|&(token, slot)| block.output_row(token, slot).to_vec()).collect()
}

/// Root of the mean squared distance, as part of that of the expected values.
pub(crate) fn apart(expected: &[f32], found: &[f32]) -> f32 {
    let squares = |values: &mut dyn Iterator<Item = f32>| {
        values.map(|value| f64::from(value).powi(2)).sum::<f64>()
    };
    let distance = squares(&mut expected.iter().zip(found).map(|(a, b)| a - b));
    let size = squares(&mut expected.iter().copied());
    (distance / size.max(f64::MIN_POSITIVE)).sqrt() as f32
}

struct Whole;

impl BlockExecutor for Whole {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        Ok(cpu.compute(block, Way::Whole).expect("a whole block"))
    }
}
