//! N9: the ladder from one graph per expert to tiers, groups and residency, as time and energy of
//! one chunk.

use motley_plan::tiers::{Group, GroupRule, LayerTiers, TierRule, Used, group};
use motley_trace::Phase;

use super::assumed::Assumptions;
use super::costs::DeviceCosts;
use super::routing::{PROMPTS, Routing};

/// Steps of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// One graph per expert, all of one shape.
    Base,
    /// Tiers.
    Tiers,
    /// Tiers and groups.
    Groups,
    /// Tiers, groups and residency.
    All,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Base, Self::Tiers, Self::Groups, Self::All];
}

/// Mean of one step over layers, prompts and chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rung {
    /// Time of one layer for a chunk.
    pub us: f64,
    /// Energy of it.
    pub joules: f64,
    /// Dropped and padded rows.
    pub used: Used,
    /// Graphs that run.
    pub graphs: f64,
}

/// What a walk up the ladder needs.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    /// The model's routing.
    pub routing: &'a Routing,
    /// The device's costs.
    pub costs: &'a DeviceCosts,
    /// What is left open.
    pub open: Assumptions,
    /// The prompts.
    pub prompt: Prompt,
}

impl Walk<'_> {
    /// One step over prompts that calibration has not seen.
    pub fn step(&self, step: Step) -> Rung {
        let Prompt { tokens, chunk_tokens } = self.prompt;
        let used = u32::from(self.routing.model.k);
        let rule = TierRule { headroom: self.open.headroom, ..TierRule::new(chunk_tokens, used) };
        let mut sum = Rung::default();
        let mut count = 0.0;
        for layer in &self.routing.profile.layers {
            let counts = layer.best(Phase::Prefill);
            let tiers = tiers_of(&counts, &rule, self.open, step);
            let groups = groups_of(&counts, &tiers, self.routing, step);
            for prompt in 0..PROMPTS {
                for loads in self.routing.chunks(layer.layer, prompt, tokens, chunk_tokens) {
                    let rung = self.chunk(&groups, &loads, step);
                    sum.us += rung.us;
                    sum.joules += rung.joules;
                    sum.graphs += rung.graphs;
                    sum.used = sum.used.and(tiers.used(&loads));
                    count += 1.0;
                }
            }
        }
        Rung { us: sum.us / count, joules: sum.joules / count, graphs: sum.graphs / count, ..sum }
    }

    /// One chunk: groups with routed tokens run on the device, cold ones on the CPU where the
    /// step allows it, one after the other.
    fn chunk(&self, groups: &[Group], loads: &[u32], step: Step) -> Rung {
        let (costs, open) = (self.costs, self.open);
        let mut rung = Rung::default();
        let (mut device_us, mut cpu_us) = (0.0, 0.0);
        for group in groups {
            let load = |expert: &u16| loads[usize::from(*expert)];
            if group.experts.iter().all(|expert| load(expert) == 0) {
                continue;
            }
            let on_device = costs.graph_us(group.experts.len() as u32, group.capacity);
            let kept = |expert: &u16| load(expert).min(group.capacity);
            let on_cpu: f64 = group.experts.iter().map(|expert| costs.cpu.us(kept(expert))).sum();
            if step == Step::All && on_cpu < on_device {
                cpu_us += on_cpu;
            } else {
                device_us += on_device;
                rung.graphs += 1.0;
            }
        }
        let launching_us = rung.graphs * costs.launch_us;
        rung.us = device_us + cpu_us;
        rung.joules = 1e-6 * (open.device_w * device_us + open.cpu_w * (cpu_us + launching_us));
        rung
    }
}

/// A prompt and how it is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prompt {
    /// Its tokens.
    pub tokens: u32,
    /// Tokens of a chunk.
    pub chunk_tokens: u32,
}

fn tiers_of(counts: &[u64], rule: &TierRule, open: Assumptions, step: Step) -> LayerTiers {
    if step != Step::Base {
        return LayerTiers::of(counts, rule);
    }
    // The fixed shape must hold the busiest expert of any prompt.
    let rows = (rule.base(counts.len()) * open.fixed_shape).ceil() as u32;
    let rows = rows.next_multiple_of(16);
    LayerTiers { tiers: vec![rows], capacity: vec![rows; counts.len()] }
}

fn groups_of(counts: &[u64], tiers: &LayerTiers, routing: &Routing, step: Step) -> Vec<Group> {
    let bytes = (2.0 * routing.model.expert_weights) as u64;
    let grouped = matches!(step, Step::Groups | Step::All);
    let rule = GroupRule::new(bytes);
    let rule = if grouped { rule } else { GroupRule { max_graph_bytes: 0, ..rule } };
    group(counts, tiers, &rule)
}
