//! A block divided between the device and the other units, computed by both at once (H1), and
//! put together. What is past capacity spills, is dropped, or finds room (N3).

use super::figures::LayerFigures;
use super::launch::Launchers;
use super::layer::NpuLayer;
use super::options::{NpuChoice, NpuOverflow, Shared};
use super::weights::LayerError;
use crate::blocks::first_unit::FirstUnit;
use crate::blocks::resident::{ExpertPlace, ExpertPlaces};
use crate::clock::now;
use motley_ggml::{CpuUnit, ExpertBlock};
use motley_sched::Phase;
use motley_sched::overflow::{Capped, Overflow, Pair, cap};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Below this part of the chunk the capacities are for, a block stays with the other units.
const LEAST_SHARE: f64 = 0.25;

/// The device in one session.
pub(super) struct NpuUnit {
    shared: Arc<Shared>,
    /// Where experts are, unless all are in memory.
    places: Option<ExpertPlaces>,
    /// Layers met so far; `None` runs elsewhere.
    layers: HashMap<u32, Option<NpuLayer>>,
    launchers: Launchers,
    scores: Vec<f32>,
    /// When the block under way was begun, and what it adds to the figures.
    begun: Option<(Instant, LayerFigures)>,
}

impl FirstUnit for NpuUnit {
    fn begin(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<bool, String> {
        let least = LEAST_SHARE * f64::from(self.shared.options.chunk_tokens);
        if phase == Phase::Decode || !self.is_ready(block) {
            return Ok(false);
        }
        if (block.tokens() as f64) < least {
            self.count(block, &LayerFigures { left: pairs_of(block), ..Default::default() });
            return Ok(false);
        }
        self.score(block, cpu)?;
        let capacity = self.capacity(block);
        let Some(Some(layer)) = self.layers.get_mut(&block.layer()) else { return Ok(false) };
        let capped = divide(block, &capacity, &self.scores, self.shared.options.overflow);
        layer.gather(block, &capped.kept);
        for pair in capped.kept.iter().chain(&capped.pruned) {
            block.set_aside(pair.token as usize, usize::from(pair.slot));
        }
        for pair in &capped.pruned {
            block.drop_row(pair.token as usize, usize::from(pair.slot));
        }
        layer.launch(&mut self.launchers)?;
        let added = LayerFigures {
            blocks: 1,
            pairs: pairs_of(block),
            device: capped.kept.len() as u64,
            spilled: capped.spilled.len() as u64,
            pruned: capped.pruned.len() as u64,
            ..LayerFigures::default()
        };
        self.begun = Some((now(), added));
        Ok(true)
    }

    fn finish(&mut self, block: &mut ExpertBlock<'_>) -> Result<bool, String> {
        let Some((begun, added)) = self.begun.take() else { return Ok(false) };
        let cpu_us = begun.elapsed().as_micros() as u64;
        let Some(Some(layer)) = self.layers.get_mut(&block.layer()) else { return Ok(false) };
        let device = layer.collect(&mut self.launchers, block)?;
        let (padding, launches) = (device.padding, device.launches);
        let device_us = device.took.as_micros() as u64;
        self.count(block, &LayerFigures { padding, launches, device_us, cpu_us, ..added });
        Ok(false)
    }
}

impl NpuUnit {
    pub(super) fn new(shared: Arc<Shared>, places: Option<ExpertPlaces>) -> Self {
        let launchers = Launchers::start(shared.options.launches, shared.options.launch_cost);
        let (layers, scores) = (HashMap::new(), Vec::new());
        Self { shared, places, layers, launchers, scores, begun: None }
    }

    /// By expert: rows of this block it may have on the device.
    fn capacity(&self, block: &ExpertBlock<'_>) -> Vec<u32> {
        let number = block.layer();
        let Some(Some(layer)) = self.layers.get(&number) else { return Vec::new() };
        let mut loads = vec![0; block.experts()];
        block.rows().for_each(|(_, _, expert)| loads[expert as usize] += 1);
        let launches = self.shared.options.launches;
        let NpuChoice::Measured { cpu, read_us } = self.shared.options.choice else {
            return layer.capacity(&loads, launches, None);
        };
        let on_disk: Vec<bool> = match &self.places {
            None => Vec::new(),
            Some(places) => {
                let places = places.layer(number as usize, loads.len());
                places.map(|place| place == ExpertPlace::Disk).collect()
            }
        };
        let elsewhere_us = |expert: u16, rows: u32| {
            let read = rows > 0 && on_disk.get(usize::from(expert)).is_some_and(|is| *is);
            cpu.us(rows).max(if read { read_us } else { 0.0 })
        };
        layer.capacity(&loads, launches, Some(&elsewhere_us))
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

    fn count(&self, block: &ExpertBlock<'_>, added: &LayerFigures) {
        let mut figures = self.shared.figures.lock().expect("no panic holds this lock");
        figures.layers.entry(block.layer()).or_default().add(added);
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

/// Where the pairs of experts with a capacity go; all others stay with the other units.
fn divide(
    block: &ExpertBlock<'_>,
    capacity: &[u32],
    scores: &[f32],
    policy: NpuOverflow,
) -> Capped {
    let on_device = |&(_, _, expert): &(usize, usize, u32)| {
        capacity.get(expert as usize).is_some_and(|rows| *rows > 0)
    };
    let pair = |(token, slot, expert): (usize, usize, u32)| {
        let score = scores.get(token * capacity.len() + expert as usize);
        let saliency = score.copied().unwrap_or(0.0);
        Pair { token: token as u32, slot: slot as u8, expert: expert as u16, saliency }
    };
    let pairs: Vec<Pair> = block.rows().filter(on_device).map(pair).collect();
    let overflow = match policy {
        NpuOverflow::Prune => Overflow::Prune,
        NpuOverflow::Spill | NpuOverflow::Pad => Overflow::Spill,
    };
    cap(&pairs, capacity, overflow)
}
