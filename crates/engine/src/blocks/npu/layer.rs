//! A layer's compiled graphs, and the rows on their way through them (W3).

use super::group::LoadedGroup;
use super::launch::Launchers;
use super::options::Shared;
use super::shape::{Shaped, expert_bytes, graph_spec};
use super::weights::{LayerError, read, shape, weights};
use motley_ggml::{ExpertBlock, Formula, Gated};
use motley_model::LayerExperts;
use motley_npu::graph::Recipe;
use motley_npu::{Activation, Graph, GraphKey, GraphSpec};
use motley_plan::tiers::Group;
use motley_sched::graphs::launches;
use motley_sched::overflow::Pair;
use std::time::Duration;

/// The part of one layer that is on the device.
pub(super) struct NpuLayer {
    /// By expert: its graph and its place there.
    place: Vec<Option<(usize, usize)>>,
    /// `None` while one is under way.
    groups: Vec<Option<LoadedGroup>>,
}

/// What the device did for one block.
#[derive(Default)]
pub(super) struct DeviceRun {
    pub(super) launches: u64,
    /// Rows of zeros.
    pub(super) padding: u64,
    /// Time of all launches, one after the other.
    pub(super) took: Duration,
}

impl NpuLayer {
    /// Compiles the graphs of the block's layer; `formula` is the block's own. With costs at hand,
    /// only those that pay (N5); never more than the layer's part of the device's memory.
    pub(super) fn prepare(
        shared: &Shared,
        layer: &LayerExperts,
        hidden: usize,
        formula: &Formula,
    ) -> Result<Self, LayerError> {
        let options = &shared.options;
        let like = GraphSpec {
            shape: shape(layer, hidden)?,
            experts: 0,
            capacity: 0,
            activation: activation(formula.gated),
            biased: formula.biased,
            precision: options.provider.precision,
        };
        let bytes = expert_bytes(like.shape, like.precision);
        let mut shaped = Shaped::of(options, layer, bytes);
        let mut room = options.memory_bytes / shared.spec.expert_layers().count().max(1) as u64;
        let place = vec![None; layer.experts as usize];
        let mut made = Self { place, groups: Vec::new() };
        for group in shaped.take_groups() {
            let group_bytes = bytes * group.experts.len() as u64;
            if group_bytes > room || !shaped.pays(&group) {
                continue;
            }
            let spec = graph_spec(&group, &like);
            let graph = compile(shared, layer, &group, &spec)?;
            let mut loaded = LoadedGroup::new(group, graph, &spec);
            if shaped.wants_measured() {
                let us = loaded.measure(options.launch_cost)?;
                shaped.measured(&loaded.group, us);
                if !shaped.pays(&loaded.group) {
                    continue;
                }
            }
            room -= group_bytes;
            made.add(loaded);
        }
        Ok(made)
    }

    fn add(&mut self, loaded: LoadedGroup) {
        for (place, &expert) in loaded.group.experts.iter().enumerate() {
            self.place[usize::from(expert)] = Some((self.groups.len(), place));
        }
        self.groups.push(Some(loaded));
    }

    /// By expert: rows it may have in a block with these `loads`; 0 is the other units'.
    /// `elsewhere_us`: what these take for rows of an expert; `None` launches every graph.
    pub(super) fn capacity(
        &self,
        loads: &[u32],
        at_once: usize,
        elsewhere_us: Option<&dyn Fn(u16, u32) -> f64>,
    ) -> Vec<u32> {
        let loaded = || self.groups.iter().flatten();
        let costs: Option<Vec<_>> = loaded().map(LoadedGroup::cost).collect();
        let launched = match (costs, elsewhere_us) {
            (Some(costs), Some(elsewhere_us)) => launches(&costs, loads, at_once, elsewhere_us),
            _ => vec![true; self.groups.len()],
        };
        let mut capacity = vec![0; self.place.len()];
        for (loaded, _) in loaded().zip(launched).filter(|(_, is)| *is) {
            for &expert in &loaded.group.experts {
                capacity[usize::from(expert)] = loaded.group.capacity;
            }
        }
        capacity
    }

    /// Takes the rows of `pairs`, which are within capacity.
    pub(super) fn gather(&mut self, block: &ExpertBlock<'_>, pairs: &[Pair]) {
        for group in self.groups.iter_mut().flatten() {
            group.rows.clear();
            group.targets.clear();
        }
        for pair in pairs {
            let (token, slot) = (pair.token as usize, usize::from(pair.slot));
            let Some((group, place)) = self.place[usize::from(pair.expert)] else { continue };
            let Some(group) = &mut self.groups[group] else { continue };
            if let Some(row) = group.rows.push(place, block.hidden_row(token, slot)) {
                group.targets.push((token, slot, row));
            }
        }
    }

    /// Launches every graph that has rows.
    pub(super) fn launch(&mut self, launchers: &mut Launchers) -> Result<(), String> {
        for (place, slot) in self.groups.iter_mut().enumerate() {
            if let Some(group) = slot.take_if(|group| !group.targets.is_empty()) {
                launchers.launch(place, group)?;
            }
        }
        Ok(())
    }

    /// Waits for the graphs and puts valid rows where they belong.
    pub(super) fn collect(
        &mut self,
        launchers: &mut Launchers,
        block: &mut ExpertBlock<'_>,
    ) -> Result<DeviceRun, String> {
        let mut ran = DeviceRun::default();
        let collected = launchers.collect(|place, group| {
            ran.launches += 1;
            ran.padding += group.rows.padding() as u64;
            ran.took += group.took;
            self.groups[place] = Some(group);
        });
        collected?;
        for group in self.groups.iter().flatten() {
            let width = group.rows.hidden();
            for &(token, slot, row) in &group.targets {
                block.write_row(token, slot, &group.output[row * width..(row + 1) * width]);
            }
        }
        Ok(ran)
    }
}

fn activation(gated: Gated) -> Activation {
    match gated {
        Gated::SwiGlu => Activation::SwiGlu,
        Gated::SwiGluClamped { alpha, limit } => Activation::SwiGluClamped { alpha, limit },
    }
}

fn compile(
    shared: &Shared,
    layer: &LayerExperts,
    group: &Group,
    spec: &GraphSpec,
) -> Result<Graph, LayerError> {
    let options = &shared.options;
    let recipe = Recipe { spec, config: &options.provider, limits: &options.limits };
    let experts = group.experts.iter();
    let raw = experts.map(|&expert| read(layer, &shared.files, u32::from(expert)));
    let raw: Vec<_> = raw.collect::<Result<_, _>>()?;
    let given = || raw.iter().map(|raw| weights(raw, spec)).collect::<Result<Vec<_>, _>>();
    let Some(cache) = &shared.cache else {
        let given = given()?;
        return Ok(Graph::compile(&shared.runtime, recipe, &given.iter().collect::<Vec<_>>())?);
    };
    let mut key = GraphKey::new(spec, &options.provider);
    for (tensor, bytes) in raw.iter().flatten() {
        key.add(tensor.ty.name().as_bytes());
        key.add(bytes);
    }
    Graph::cached(&shared.runtime, recipe, (cache, &key), given)
}
