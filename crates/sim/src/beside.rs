//! The simulator's answer to a recorded timeline: the routing read off its spans, driven again in
//! virtual time with the durations that were measured in it (M1). What differs between the two is
//! the driver's doing: waking threads, launches, memory that is shared.

use std::collections::{BTreeMap, BTreeSet};

use motley_cost::statistics::median;
use motley_cost::{ComputeCost, ComputeSample, Nanos, TransferCost};
use motley_sched::spans::{Row, Span, SpanKind, Spans};
use motley_sched::{Costs, Homes, Phase, Rules, SchedulerSetup, Tier, Unit};
use motley_trace::{ExpertKey, Trace, TraceHeader, Visit};

use crate::drive::{DriveError, drive};
use crate::predictions::{LayersAhead, PredictionParams};
use crate::world::{DenseCost, Truth, World};

/// Part of the next layer's choices that is predicted where no run measured it: what other
/// systems report.
pub const DEFAULT_PREDICTION_ACCURACY: f64 = 0.8;
/// Tokens among which the layer to draw is looked for.
const MOST_TRIED: usize = 64;

/// The routing of a recorded drive: which experts every layer computed, and for how many tokens.
/// Which token chose which expert is not in a timeline; the rows are filled in order.
pub fn routing(spans: &Spans, header: &TraceHeader) -> Trace {
    let all: Vec<Span> = spans.iter().copied().collect();
    let mut visits: Vec<Visit> = Vec::new();
    let (mut pass, mut position, mut last_layer) = (0, 0, None);
    for part in all.chunk_by(|_, next| !is_dense(next)) {
        let loads = loads(part);
        let Some(layer) = loads.keys().next().map(|key| key.layer) else { continue };
        let pairs: u32 = loads.values().sum();
        let tokens = pairs.div_ceil(u32::from(header.k.max(1))).max(1);
        if last_layer.is_some_and(|last| layer <= last) {
            position += visits.last().map_or(0, |visit| visit.tokens() as u32);
            pass += 1;
        }
        last_layer = Some(layer);
        let times = |(key, &load): (&ExpertKey, &u32)| vec![key.expert; load as usize];
        visits.push(Visit {
            pass,
            layer,
            phase: if tokens > 1 { Phase::Prefill } else { Phase::Decode },
            positions: (position..position + tokens).collect(),
            experts: loads.iter().flat_map(times).collect(),
            ..Visit::default()
        });
    }
    same_phase(&mut visits);
    Trace { header: header.clone(), visits }
}

/// The last layer of a prompt computes only the tokens whose output is wanted, often one: it is
/// still of the prompt.
fn same_phase(visits: &mut [Visit]) {
    for pass in visits.chunk_by_mut(|a, b| a.pass == b.pass) {
        let phase = pass.first().map_or(Phase::Decode, |visit| visit.phase);
        pass.iter_mut().for_each(|visit| visit.phase = phase);
    }
}

/// The same routing under the same scheduler in virtual time, from the same beginning. `prediction_accuracy`
/// is the part of the next layer's choices that is known early.
pub fn again(
    recorded: &Spans,
    trace: &Trace,
    setup: &SchedulerSetup,
    prediction_accuracy: f64,
) -> Result<Spans, DriveError> {
    // What was left out is not in what is recorded.
    let rules = Rules { skip_cold: None, ..setup.rules };
    let setup = &SchedulerSetup { rules, ..setup.clone() };
    let mut scheduler = setup.scheduler(&trace.header);
    for (tier, keys) in (0..).zip(setup.residents(&trace.header)) {
        scheduler.preload(tier, &keys);
    }
    let truth = |phase| Truth {
        costs: measured(recorded, trace, phase, &setup.costs),
        dense: dense(recorded, trace, phase),
    };
    let Truth { costs, dense } = truth(Phase::Decode);
    let layers = LayersAhead::asked(|phase| setup.rules.layers_ahead_in(phase));
    let predictions = PredictionParams { layers, accuracy: prediction_accuracy, seed: 0 };
    let world = World::new(costs, dense).with_prefill(truth(Phase::Prefill));
    let mut world = world.with_predictions(predictions);
    let mut spans = Spans::default();
    drive(&mut trace.source(), &mut scheduler, &mut world, Some(&mut spans))?;
    Ok(spans)
}

/// The recorded layers, each with the phase of its visit.
fn layers<'a>(recorded: &'a [Span], trace: &'a Trace) -> impl Iterator<Item = (Phase, &'a [Span])> {
    let parts = recorded.chunk_by(|_, next| !is_dense(next));
    let computed = parts.filter(|part| !loads(part).is_empty());
    trace.visits.iter().map(|visit| visit.phase).zip(computed)
}

/// What was measured in one phase; where nothing was, what the scheduler took it for.
fn measured(recorded: &Spans, trace: &Trace, phase: Phase, taken: &Costs) -> Costs {
    let all: Vec<Span> = recorded.iter().copied().collect();
    let mut units: BTreeMap<Unit, Vec<ComputeSample>> = BTreeMap::new();
    let mut links: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
    let of_phase = layers(&all, trace).filter(|(of, _)| *of == phase);
    for span in of_phase.flat_map(|(_, part)| part) {
        let took_us = span.ends.since(span.begins).as_us();
        match span.kind {
            SpanKind::Compute { unit, tokens, .. } => {
                units.entry(unit).or_default().push(ComputeSample { tokens, took_us });
            }
            SpanKind::Load { tier, .. } => links.entry(tier).or_default().push(took_us),
            SpanKind::Dense { .. } => {}
        }
    }
    let unit = |unit| units.get(&unit).and_then(|samples| fitted(samples));
    let link = |tier| links.get(&tier).and_then(|times| median(times));
    let tier = |(number, taken): (u16, &Tier)| Tier {
        unit: unit(Unit::Tier(number)).unwrap_or(taken.unit),
        link: link(number)
            .map_or(taken.link, |us| TransferCost { latency_us: us, per_byte_us: 0.0 }),
        entry_us: 0.0,
        entry_per_token_us: 0.0,
        ..*taken
    };
    let home = |taken: Homes| Homes {
        unit: unit(Unit::Home(0)).unwrap_or(taken.unit),
        entry_us: 0.0,
        entry_per_token_us: 0.0,
        ..taken
    };
    Costs {
        home: taken.home.map(home),
        tiers: (0..).zip(&taken.tiers).map(tier).collect(),
        expert_bytes: taken.expert_bytes,
    }
}

/// A line with a floor through the samples; one load only gives a constant.
fn fitted(samples: &[ComputeSample]) -> Option<ComputeCost> {
    let sound: Vec<ComputeSample> = samples.iter().copied().filter(|s| s.took_us > 0.0).collect();
    let fit = ComputeCost::fit_relative(&sound).ok().map(|fit| fit.model);
    let times: Vec<f64> = sound.iter().map(|sample| sample.took_us).collect();
    fit.or_else(|| median(&times).map(ComputeCost::constant))
}

fn dense(recorded: &Spans, trace: &Trace, phase: Phase) -> DenseCost {
    let all: Vec<Span> = recorded.iter().copied().collect();
    let took = |(_, part): (Phase, &[Span])| {
        let first = part.first().filter(|span| is_dense(span));
        first.map(|span| span.ends.since(span.begins).as_us())
    };
    let times: Vec<f64> =
        layers(&all, trace).filter(|(of, _)| *of == phase).filter_map(took).collect();
    let layer_us = median(&times).unwrap_or(0.0);
    DenseCost { layer_us, layer_per_token_us: 0.0, pass_us: 0.0 }
}

/// Tokens of every expert computed in one layer; one computed in two parts counts once.
fn loads(part: &[Span]) -> BTreeMap<ExpertKey, u32> {
    let mut loads = BTreeMap::new();
    for span in part {
        if let SpanKind::Compute { key, tokens, .. } = span.kind {
            loads.insert(key, tokens);
        }
    }
    loads
}

fn is_dense(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Dense { .. })
}

/// The stretches of one layer in two recordings.
type Stretches = [(Nanos, Nanos); 2];

/// A typical layer of what was decoded: the middle layer of a token in which the most lanes of the
/// first recording worked, and of those tokens one that took neither long nor short. The layer and
/// its stretches in both; `None` when nothing was decoded.
pub fn typical_layer(trace: &Trace, both: [&Spans; 2]) -> Option<(u16, Stretches)> {
    let decoded = || trace.visits.iter().filter(|visit| visit.phase == Phase::Decode);
    let layer = decoded().nth(decoded().count() / 2)?.layer;
    let of_layer = trace.visits.iter().filter(|visit| visit.layer == layer).enumerate();
    let decoded = of_layer.filter(|(_, visit)| visit.phase == Phase::Decode);
    let stretches = |(number, _)| -> Option<Stretches> {
        let [first, second] = both.map(|spans| spans.window_of(layer, number));
        Some([first?, second?])
    };
    let mut found: Vec<(usize, Stretches)> = decoded
        .take(MOST_TRIED)
        .filter_map(stretches)
        .map(|stretches| (lanes(both[0], stretches[0]), stretches))
        .collect();
    let most = found.iter().map(|(lanes, _)| *lanes).max()?;
    found.retain(|(lanes, _)| *lanes == most);
    found.sort_by_key(|(_, [(from, to), _])| to.since(*from));
    found.get(found.len() / 2).map(|(_, stretches)| (layer, *stretches))
}

/// Units and links that worked in a stretch.
fn lanes(spans: &Spans, (from, to): (Nanos, Nanos)) -> usize {
    let inside = spans.iter().filter(|span| span.ends > from && span.begins < to);
    let tiers = spans.tiers();
    inside.map(|span| Row::of(span.kind).number(tiers)).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use motley_sched::TierSetup;
    use motley_sched::cache::{Capacity, PolicyChoice};
    use motley_sched::prefetch::PrefetchChoice;
    use motley_sched::regime::typical_hybrid;
    use motley_sched::scheduler::SchedulerLimits;
    use motley_sched::strategy::StrategyChoice;

    use super::*;
    use crate::synth::{Synth, SynthParams};

    fn setup() -> SchedulerSetup {
        SchedulerSetup {
            costs: typical_hybrid(2_000_000),
            tiers: vec![TierSetup {
                capacity: Capacity::Global { slots: 24 },
                limits: SchedulerLimits::beside_home(32),
            }],
            rules: Rules::of(StrategyChoice::Timelines, PolicyChoice::Lru, PrefetchChoice::Refill),
            parts: false,
            most_used: Vec::new(),
        }
    }

    fn trace() -> Trace {
        let params = SynthParams {
            model: "synthetic".into(),
            layers: 4,
            experts: 16,
            k: 4,
            prompt_tokens: 24,
            decode_tokens: 40,
            zipf_skew: 0.5,
            repeat: 0.2,
            recall: 0.3,
            layer_correlation: 0.5,
            weight_tilt: 0.2,
        };
        Trace::collect(&mut Synth::new(params, 3).expect("parameters")).expect("a trace")
    }

    /// A drive of the simulator stands in for a recorded one.
    fn recorded(trace: &Trace) -> Spans {
        let setup = setup();
        let mut world =
            World::new(setup.costs.clone(), DenseCost { layer_us: 50.0, ..DenseCost::default() });
        let mut spans = Spans::default();
        let mut scheduler = setup.scheduler(&trace.header);
        drive(&mut trace.source(), &mut scheduler, &mut world, Some(&mut spans)).expect("a drive");
        spans
    }

    #[test]
    fn routing_comes_back_from_a_timeline() {
        let synthetic = trace();
        let found = routing(&recorded(&synthetic), &synthetic.header);
        assert_eq!(found.visits.len(), synthetic.visits.len());
        for (found, synthetic) in found.visits.iter().zip(&synthetic.visits) {
            let sorted = |visit: &Visit| {
                let mut experts = visit.experts.clone();
                experts.sort_unstable();
                experts
            };
            assert_eq!(
                (found.layer, found.phase, found.pass),
                (synthetic.layer, synthetic.phase, synthetic.pass)
            );
            assert_eq!((sorted(found), found.tokens()), (sorted(synthetic), synthetic.tokens()));
        }
    }

    #[test]
    fn a_simulated_recording_is_met_by_the_simulator() {
        let synthetic = trace();
        let recorded = recorded(&synthetic);
        let found = routing(&recorded, &synthetic.header);
        let again = again(&recorded, &found, &setup(), 0.0).expect("a drive");
        let wall = |spans: &Spans| spans.iter().map(|span| span.ends).max().unwrap_or_default();
        let off = wall(&again).as_s() / wall(&recorded).as_s() - 1.0;
        assert!(off.abs() < 0.05, "{off}");
        let (_, [a, b]) = typical_layer(&found, [&recorded, &again]).expect("decoded tokens");
        assert!(a.1 > a.0 && b.1 > b.0);
    }
}
