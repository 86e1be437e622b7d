//! A block divided between the device and the CPU, computed by both at once (H1), and
//! put together. What is past capacity spills, is dropped, or finds room (N3).

use super::figures::LayerFigures;
use super::layer::NpuLayer;
use super::options::{NpuOverflow, Shared};
use super::weights::LayerError;
use crate::blocks::helper::BlockHelper;
use crate::blocks::way::way_of;
use crate::clock::now;
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_plan::ExpertKernels;
use motley_sched::Phase;
use motley_sched::overflow::{Capped, Overflow, Pair, cap};
use std::collections::HashMap;
use std::sync::Arc;

/// Below this part of the chunk the capacities are for, a block stays on the CPU.
const LEAST_SHARE: f64 = 0.25;

/// The device in one session.
pub(super) struct NpuHelper {
    shared: Arc<Shared>,
    /// Layers met so far; `None` runs on the CPU.
    layers: HashMap<u32, Option<NpuLayer>>,
    scores: Vec<f32>,
}

impl BlockHelper for NpuHelper {
    fn run(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        kernels: &ExpertKernels,
    ) -> Result<Option<ComputeOutcome>, String> {
        let least = LEAST_SHARE * f64::from(self.shared.options.chunk_tokens);
        if phase == Phase::Decode || !self.is_ready(block) {
            return Ok(None);
        }
        if (block.tokens() as f64) < least {
            self.count(block, LayerFigures { left: pairs_of(block), ..Default::default() });
            return Ok(None);
        }
        self.score(block, cpu)?;
        let Some(Some(layer)) = self.layers.get_mut(&block.layer()) else { return Ok(None) };
        let divided = Divided::of(block, layer, &self.scores, self.shared.options.overflow);
        layer.gather(block, &divided.capped.kept);
        for pair in &divided.capped.pruned {
            block.drop_row(pair.token as usize, usize::from(pair.slot));
        }
        let launch = self.shared.options.launch_cost;
        let (device, outcome, cpu_took) = std::thread::scope(|scope| {
            let device = scope.spawn(|| layer.run(launch));
            let start = now();
            let rows = &divided.cpu_rows;
            let way = way_of(kernels, block);
            let outcome = cpu.compute_rows(block, rows, way);
            let cpu_took = start.elapsed();
            (device.join(), outcome, cpu_took)
        });
        let device = device
            .map_err(|_| "the device's thread panicked".to_owned())?
            .map_err(|error| error.to_string())?;
        layer.scatter(block);
        let capped = &divided.capped;
        let added = LayerFigures {
            blocks: 1,
            pairs: pairs_of(block),
            device: capped.kept.len() as u64,
            spilled: capped.spilled.len() as u64,
            pruned: capped.pruned.len() as u64,
            padding: device.padding,
            launches: device.launches,
            left: 0,
            device_us: device.took.as_micros() as u64,
            cpu_us: cpu_took.as_micros() as u64,
        };
        self.count(block, added);
        outcome.map(Some).map_err(|error| error.to_string())
    }
}

impl NpuHelper {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, layers: HashMap::new(), scores: Vec::new() }
    }

    /// Prepares the block's layer when it is met first; whether the device takes it.
    fn is_ready(&mut self, block: &ExpertBlock<'_>) -> bool {
        let number = block.layer();
        if let Some(layer) = self.layers.get(&number) {
            return layer.is_some();
        }
        let prepared = prepare(&self.shared, block);
        if let Err(reason) = &prepared {
            let mut figures = self.shared.figures.lock().expect("no panic holds this lock");
            figures.refused.insert(number, reason.clone());
        }
        let taken = prepared.is_ok();
        self.layers.insert(number, prepared.ok());
        taken
    }

    /// The router's weights, when something may be dropped by them: `[tokens][experts]`.
    fn score(&mut self, block: &ExpertBlock<'_>, cpu: &mut CpuUnit) -> Result<(), String> {
        self.scores.clear();
        let layer = block.layer() as usize;
        let Some(gates) = &self.shared.gates else { return Ok(()) };
        let Some(rows) = gates.rows(layer) else { return Ok(()) };
        cpu.project(block, rows, &mut self.scores).map_err(|error| error.to_string())?;
        self.scores.chunks_mut(gates.experts()).for_each(|token| gates.score(layer, token));
        Ok(())
    }

    fn count(&self, block: &ExpertBlock<'_>, added: LayerFigures) {
        let mut figures = self.shared.figures.lock().expect("no panic holds this lock");
        figures.layers.entry(block.layer()).or_default().add(&added);
    }
}

/// (Token, expert) pairs of a block.
fn pairs_of(block: &ExpertBlock<'_>) -> u64 {
    (block.tokens() * block.slots()) as u64
}

fn prepare(shared: &Shared, block: &ExpertBlock<'_>) -> Result<NpuLayer, String> {
    let formula = block.formula().map_err(|error| error.to_string())?;
    let layer = shared.spec.layers.get(block.layer() as usize).and_then(Option::as_ref);
    let layer = layer.ok_or("the layer has no experts")?;
    NpuLayer::prepare(shared, layer, block.hidden_width(), &formula)
        .map_err(|error: LayerError| error.to_string())
}

/// Where the pairs of a block go.
struct Divided {
    capped: Capped,
    /// (token, slot) for the CPU: cold experts, and what spilled.
    cpu_rows: Vec<(usize, usize)>,
}

impl Divided {
    fn of(block: &ExpertBlock<'_>, layer: &NpuLayer, scores: &[f32], policy: NpuOverflow) -> Self {
        let experts = layer.capacity.len();
        let (mut pairs, mut cpu_rows) = (Vec::new(), Vec::new());
        for token in 0..block.tokens() {
            for slot in 0..block.slots() {
                let expert = block.expert(token, slot) as usize;
                if layer.capacity.get(expert).is_none_or(|rows| *rows == 0) {
                    cpu_rows.push((token, slot));
                    continue;
                }
                let saliency = scores.get(token * experts + expert).copied().unwrap_or(0.0);
                pairs.push(Pair {
                    token: token as u32,
                    slot: slot as u8,
                    expert: expert as u16,
                    saliency,
                });
            }
        }
        let overflow = match policy {
            NpuOverflow::Prune => Overflow::Prune,
            NpuOverflow::Spill | NpuOverflow::Pad => Overflow::Spill,
        };
        let capped = cap(&pairs, &layer.capacity, overflow);
        let spilled = capped.spilled.iter();
        cpu_rows.extend(spilled.map(|pair| (pair.token as usize, usize::from(pair.slot))));
        Self { capped, cpu_rows }
    }
}
