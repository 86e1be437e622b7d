//! Policy and prefetcher of each memory, chosen by replay of recorded routing with a hold-out (M6).
//!
//! ```text
//!   decode passes   0 %        35 %              70 %             100 %
//!                   ├── warm ──┼──── chosen by ───┼─── held out ────┤
//! ```
//!
//! Devices begin with the most used experts of the warm part, as a run's do with those of a profile.
//! The search goes coordinate by coordinate: all memories alike, then one memory's prefetcher or
//! policy at a time, until a round finds nothing faster. The fastest is worth keeping only if it is
//! also faster than the defaults by [`MARGIN`] on passes nobody has looked at. Where no prompt lies
//! among those, the prompts before them count there too: what slows them is not kept.

use std::ops::Range;

use motley_plan::decide::asked::{ANSWER_TOKENS, DEFAULT_PROMPT_TOKENS};
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{Memories, MemoryRules, Named, Rules};
use motley_trace::{Phase, Trace, Visit};

use crate::drive::DriveError;
use crate::outcome::{Outcome, PhaseOutcome};
use crate::setup::{Setup, counted};

/// How much faster than the defaults on the passes held out.
pub const MARGIN: f64 = 0.01;
/// Parts of the decode passes that end the warm passes, and those a choice is made by.
const WARM: f64 = 0.35;
const CHOSEN_BY: f64 = 0.7;
/// Fewer decode passes say nothing.
const LEAST_DECODE: u64 = 40;
/// Rounds through all coordinates.
const ROUNDS: usize = 3;

/// Why nothing can be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// Too little to hold anything out.
    #[error("{found} decoded tokens are too few to choose by; {LEAST_DECODE} are needed")]
    TooShort { found: u64 },
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// What the replays said.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The fastest rules on the passes they were chosen by.
    pub best: Rules,
    /// Time of the defaults over theirs on those, less one.
    pub gain: f64,
    /// The same on the passes held out.
    pub held_out_gain: f64,
    /// Decoded tokens held out.
    pub held_out_tokens: u64,
    /// Rules that were tried.
    pub tried: usize,
}

impl Choice {
    /// Whether the best rules are better than the defaults where nobody looked.
    pub fn holds(&self) -> bool {
        self.held_out_gain >= MARGIN
    }
}

/// Chooses for what `setup` simulates; `on_replay` hears of each replay.
pub fn choose(
    setup: &Setup,
    trace: &Trace,
    on_replay: &mut dyn FnMut(),
) -> Result<Choice, ChooseError> {
    let warm = trace.pass_after(WARM);
    let is_warm = trace.visits.iter().filter(|v| v.pass < warm && v.phase == Phase::Decode);
    let mut setup = setup.clone();
    setup.scheduler.most_used = counted(&trace.header, is_warm);
    let (default, memories) = (setup.scheduler.rules, setup.scheduler.memories());
    search(trace, default, memories, &mut |rules, part| {
        on_replay();
        setup.clone().with_rules(*rules).run(part, None)
    })
}

/// Drives a part of a trace under some rules.
type Replay<'a> = &'a mut dyn FnMut(&Rules, &Trace) -> Result<Outcome, DriveError>;

fn search(
    trace: &Trace,
    default: Rules,
    memories: Memories,
    replay: Replay<'_>,
) -> Result<Choice, ChooseError> {
    let parts = Parts::of(trace)?;
    let before = trace.before(parts.held_out);
    let mut tried = vec![(default, parts.chosen_by_s(&replay(&default, &before)?))];
    let mut best = tried[0];
    for _ in 0..ROUNDS {
        let begun = best.0;
        for coordinate in Coordinate::all(memories) {
            for rules in coordinate.of(best.0) {
                if tried.iter().any(|(known, _)| *known == rules) {
                    continue;
                }
                let seconds = parts.chosen_by_s(&replay(&rules, &before)?);
                tried.push((rules, seconds));
                best = if seconds < best.1 { (rules, seconds) } else { best };
            }
        }
        if best.0 == begun {
            break;
        }
    }
    let gain = tried[0].1 / best.1 - 1.0;
    let default_s = parts.held_out_s(&replay(&default, trace)?);
    let held_out_gain = default_s / parts.held_out_s(&replay(&best.0, trace)?) - 1.0;
    let (held_out_tokens, tried) = (parts.held_out_tokens, tried.len());
    Ok(Choice { best: best.0, gain, held_out_gain, held_out_tokens, tried })
}

/// What is varied while the rest stays: of both memories alike, or of one.
#[derive(Clone, Copy)]
struct Coordinate {
    memories: Memories,
    policy: bool,
}

impl Coordinate {
    fn all(there: Memories) -> Vec<Self> {
        let alike = Memories { ram: true, devices: true };
        let apart = [Memories { devices: false, ..alike }, Memories { ram: false, ..alike }];
        let apart = apart.into_iter().filter(|_| there == alike);
        let both = |memories| [false, true].map(|policy| Self { memories, policy });
        std::iter::once(alike).chain(apart).flat_map(both).collect()
    }

    /// `rules` with every choice there is in this place.
    fn of(self, rules: Rules) -> Vec<Rules> {
        let with = |change: &dyn Fn(&mut MemoryRules)| {
            let mut changed = rules;
            let Memories { ram, devices } = self.memories;
            let memories = [(ram, &mut changed.ram), (devices, &mut changed.devices)];
            memories.into_iter().filter(|(is, _)| *is).for_each(|(_, memory)| change(memory));
            changed
        };
        match self.policy {
            true => PolicyChoice::ALL.iter().map(|&own| with(&|m| m.policy = own)).collect(),
            false => PrefetchChoice::ALL.iter().map(|&own| with(&|m| m.prefetch = own)).collect(),
        }
    }
}

/// Where a trace is cut, as numbers of passes.
struct Parts {
    warm: u64,
    held_out: u64,
    /// From which pass on prompts count among those held out.
    held_out_prompts: u64,
    held_out_tokens: u64,
}

impl Parts {
    fn of(trace: &Trace) -> Result<Self, ChooseError> {
        let (warm, held_out) = (trace.pass_after(WARM), trace.pass_after(CHOSEN_BY));
        let found = trace.passes(Phase::Decode);
        if found < LEAST_DECODE {
            return Err(ChooseError::TooShort { found });
        }
        let is_held_out = |phase| move |v: &&Visit| v.pass >= held_out && v.phase == phase;
        let has_prompt = trace.visits.iter().any(|visit| is_held_out(Phase::Prefill)(&visit));
        let layer = trace.visits[0].layer;
        let decoded = trace.visits.iter().filter(is_held_out(Phase::Decode));
        let tokens = decoded.filter(|visit| visit.layer == layer).map(|v| v.tokens() as u64).sum();
        let held_out_prompts = if has_prompt { held_out } else { 0 };
        Ok(Self { warm, held_out, held_out_prompts, held_out_tokens: tokens })
    }

    /// On the passes a choice is made by, and the prompts before them.
    fn chosen_by_s(&self, outcome: &Outcome) -> f64 {
        seconds(outcome, 0..self.held_out, self.warm..self.held_out)
    }

    fn held_out_s(&self, outcome: &Outcome) -> f64 {
        seconds(outcome, self.held_out_prompts..u64::MAX, self.held_out..u64::MAX)
    }
}

/// Seconds for a prompt and its answer, by the passes in these ranges; a phase that is not there
/// takes none.
fn seconds(outcome: &Outcome, prompts: Range<u64>, decode: Range<u64>) -> f64 {
    let (mut prefill, mut single) = (PhaseOutcome::default(), PhaseOutcome::default());
    for pass in &outcome.passes {
        match pass.phase {
            Phase::Prefill if prompts.contains(&pass.pass) => prefill.add(pass),
            Phase::Decode if decode.contains(&pass.pass) => single.add(pass),
            _ => {}
        }
    }
    let each_s = |sum: &PhaseOutcome| sum.time.as_s() / sum.tokens.max(1) as f64;
    f64::from(DEFAULT_PROMPT_TOKENS) * each_s(&prefill) + ANSWER_TOKENS * each_s(&single)
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};
    use motley_sched::cache::Capacity;
    use motley_sched::cache::blend::BlendParams;
    use motley_sched::regime::typical_hybrid;
    use motley_sched::shares::Shares;
    use motley_sched::strategy::StrategyChoice;
    use motley_sched::{Costs, SchedulerLimits, SchedulerSetup};
    use motley_trace::TraceHeader;
    use motley_trace::record::FORMAT_VERSION;

    use super::*;
    use crate::world::{DenseCost, World};

    const BYTES: u64 = 2_000_000;

    /// One decode pass through one layer for each item.
    fn trace(tokens: impl Iterator<Item = Vec<u16>>) -> Trace {
        let (version, model) = (FORMAT_VERSION, "made".into());
        let header = TraceHeader { version, model, layers: 1, experts: 64, k: 2 };
        let visit = |(pass, experts)| {
            let (phase, positions) = (Phase::Decode, vec![pass as u32]);
            Visit { pass, phase, positions, experts, ..Visit::default() }
        };
        Trace { header, visits: (0..).zip(tokens).map(visit).collect() }
    }

    /// RAM with `ram` slots before a disk, and a GPU with `gpu` slots that are filled from there.
    fn replay(rules: &Rules, part: &Trace, (ram, gpu): (u32, u32)) -> Result<Outcome, DriveError> {
        let disk = TransferCost { latency_us: 900.0, per_byte_us: 0.0 };
        let disk = Costs::one_tier(ComputeCost::constant(0.0), disk, None, BYTES);
        let setup = SchedulerSetup::beyond_ram(*rules, ram, disk);
        let capacity = Capacity::Global { slots: gpu };
        let shares = Shares { capacity, limits: SchedulerLimits::beside_home(8) };
        let setup = setup.with_devices(vec![shares], typical_hybrid(BYTES), Vec::new());
        let mut world = World::new(setup.costs.clone(), DenseCost::default());
        crate::drive(&mut part.source(), &mut setup.scheduler(&part.header), &mut world, None)
    }

    const DEFAULT: Rules = Rules {
        prefill: StrategyChoice::Timelines,
        decode: StrategyChoice::Timelines,
        ram: MEMORY,
        devices: MEMORY,
        skip_cold: None,
    };
    const MEMORY: MemoryRules = MemoryRules {
        policy: PolicyChoice::Blend(BlendParams { learning_rate: 0.02, succession: true }),
        prefetch: PrefetchChoice::Refill,
    };
    const BOTH: Memories = Memories { ram: true, devices: true };

    #[test]
    fn rules_that_differ_by_memory_are_chosen_where_no_common_ones_are_as_fast() {
        // Six experts come back all the time, sixteen others for three tokens each.
        let trace = trace((0..240).map(|t| vec![t % 6, 20 + t / 3 % 16]));
        let room = (6, 2);
        let found =
            search(&trace, DEFAULT, BOTH, &mut |rules, part| replay(rules, part, room)).unwrap();
        assert_ne!(found.best.ram.policy, found.best.devices.policy, "{found:?}");
        assert!(found.holds() && found.held_out_tokens == 72, "{found:?}");
        let parts = Parts::of(&trace).unwrap();
        let held_out_s = |rules| parts.held_out_s(&replay(&rules, &trace, room).unwrap());
        let best_s = held_out_s(found.best);
        for &policy in PolicyChoice::ALL {
            for &prefetch in PrefetchChoice::ALL {
                let common = Rules::of(StrategyChoice::Timelines, policy, prefetch);
                assert!(held_out_s(common) > best_s * (1.0 + MARGIN), "{common:?} {found:?}");
            }
        }
    }

    #[test]
    fn what_does_not_hold_out_is_not_kept() {
        // Guesses by the last token gain on the tokens they are chosen by, and nothing after them.
        let trace = trace((0..240).map(|t| vec![t % 4, 20 + t / 3 % 16]));
        let mut replays = 0;
        let found = search(&trace, DEFAULT, BOTH, &mut |rules, part| {
            replays += 1;
            replay(rules, part, (6, 4))
        });
        let found = found.unwrap();
        assert!(found.gain > 0.05 && found.best != DEFAULT, "{found:?}");
        assert!(!found.holds(), "{found:?}");
        assert_eq!(replays, found.tried + 2, "nothing is replayed twice");
    }

    #[test]
    fn a_prompt_counts_where_it_lies_and_too_few_tokens_say_nothing() {
        let mut trace = trace((0..100).map(|t| vec![t % 8, 20]));
        trace.visits[0].phase = Phase::Prefill;
        let parts = Parts::of(&trace).unwrap();
        assert_eq!((parts.warm, parts.held_out, parts.held_out_prompts), (35, 70, 0));
        trace.visits[90].phase = Phase::Prefill;
        assert_eq!(Parts::of(&trace).unwrap().held_out_prompts, 69);
        let short = Parts::of(&trace.before(30)).map(|parts| parts.held_out);
        assert!(matches!(short, Err(ChooseError::TooShort { found: 29 })), "{short:?}");
    }
}
