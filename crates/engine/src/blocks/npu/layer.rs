//! A layer's compiled graphs, and the rows on their way through them (W3).

use super::options::Shared;
use super::shape::{expert_bytes, graph_spec, groups};
use super::weights::{LayerError, read, shape, weights};
use crate::clock::now;
use motley_ggml::{ExpertBlock, Formula, Gated};
use motley_model::LayerExperts;
use motley_npu::graph::Recipe;
use motley_npu::{Activation, Graph, GraphError, GraphKey, GraphSpec, GroupRows};
use motley_plan::tiers::Group;
use motley_sched::overflow::Pair;
use std::time::Duration;

/// The part of one layer that is on the device.
pub(super) struct NpuLayer {
    /// By expert: rows it may have; 0 is the CPU's.
    pub(super) capacity: Vec<u32>,
    /// By expert: its graph and its place there.
    place: Vec<Option<(usize, usize)>>,
    groups: Vec<LoadedGroup>,
}

/// What the device did for one block.
#[derive(Default)]
pub(super) struct DeviceRun {
    pub(super) launches: u64,
    /// Rows of zeros.
    pub(super) padding: u64,
    pub(super) took: Duration,
}

struct LoadedGroup {
    graph: Graph,
    rows: GroupRows,
    /// (token, slot) of each row pushed, and where it comes out.
    targets: Vec<(usize, usize, usize)>,
    output: Vec<f32>,
}

impl NpuLayer {
    /// Compiles the graphs of the block's layer; `formula` is the block's own.
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
        let mut made = Self {
            capacity: vec![0; layer.experts as usize],
            place: vec![None; layer.experts as usize],
            groups: Vec::new(),
        };
        for group in groups(options, layer.layer, layer.used, bytes) {
            let spec = graph_spec(&group, &like);
            let graph = compile(shared, layer, &group, &spec)?;
            made.add(&group, graph, &spec);
        }
        Ok(made)
    }

    fn add(&mut self, group: &Group, graph: Graph, spec: &GraphSpec) {
        for (place, &expert) in group.experts.iter().enumerate() {
            self.capacity[usize::from(expert)] = group.capacity;
            self.place[usize::from(expert)] = Some((self.groups.len(), place));
        }
        let rows = GroupRows::new(spec);
        self.groups.push(LoadedGroup { graph, rows, targets: Vec::new(), output: Vec::new() });
    }

    /// Takes the rows of `pairs`, which are within capacity.
    pub(super) fn gather(&mut self, block: &ExpertBlock<'_>, pairs: &[Pair]) {
        for group in &mut self.groups {
            group.rows.clear();
            group.targets.clear();
        }
        for pair in pairs {
            let (token, slot) = (pair.token as usize, usize::from(pair.slot));
            let Some((group, place)) = self.place[usize::from(pair.expert)] else { continue };
            let group = &mut self.groups[group];
            if let Some(row) = group.rows.push(place, block.hidden_row(token, slot)) {
                group.targets.push((token, slot, row));
            }
        }
    }

    /// Runs every graph that has rows, with `launch` added to each.
    pub(super) fn run(&mut self, launch: Duration) -> Result<DeviceRun, GraphError> {
        let start = now();
        let mut ran = DeviceRun::default();
        for group in self.groups.iter_mut().filter(|group| !group.targets.is_empty()) {
            group.graph.run(&group.rows, &mut group.output)?;
            ran.launches += 1;
            ran.padding += group.rows.padding() as u64;
            if !launch.is_zero() {
                std::thread::sleep(launch);
            }
        }
        ran.took = start.elapsed();
        Ok(ran)
    }

    /// Puts valid rows where they belong.
    pub(super) fn scatter(&self, block: &mut ExpertBlock<'_>) {
        for group in &self.groups {
            let width = group.rows.hidden();
            for &(token, slot, row) in &group.targets {
                block.write_row(token, slot, &group.output[row * width..(row + 1) * width]);
            }
        }
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
