//! What the scheduler is given beside the routing: router scores of all experts (H3) and
//! the loads the next layers are expected to have (H2). Computed only for those who ask.

use crate::blocks::gates::Gates;
use crate::clock::now;
use motley_ggml::{CpuUnit, ExpertBlock, ProjectError};
use motley_sched::prefetch::Prediction;
use motley_sched::prefetch::next_layer::MAX_LAYERS;
use motley_sched::{Phase, Rules};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Looks at the hidden rows of a block through the routers.
pub(crate) struct Predictor {
    gates: Arc<Gates>,
    wants: Wants,
    logits: Vec<f32>,
    order: Vec<u16>,
    /// Scratch for group-limited routers.
    groups: Vec<(f32, usize)>,
    /// Of the next layer's experts: tokens expected, and the sum of their scores.
    loads: Vec<u32>,
    confidence: Vec<f32>,
    scores: Vec<f32>,
    predictions: Vec<Prediction>,
    /// Those whose layers come, with how many layers ahead they were made.
    pending: Vec<(usize, Prediction)>,
    accuracy: PredictionAccuracy,
}

/// How good predictions have been, and what they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PredictionAccuracy {
    /// One layer ahead, two, three.
    pub ahead: [Guessed; MAX_LAYERS],
    /// Time spent on predictions: of it answers wait.
    pub time: Duration,
}

/// Of one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Guessed {
    /// Experts predicted for a layer that was then routed.
    pub predicted: u64,
    /// Of them routed.
    pub right: u64,
}

impl Guessed {
    /// Part of the predictions that were right; `None` where there were none.
    pub fn share(self) -> Option<f64> {
        (self.predicted > 0).then(|| self.right as f64 / self.predicted as f64)
    }
}

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wants {
    scores: bool,
    /// Coming layers to predict.
    prompts: u16,
    decode: u16,
}

impl Wants {
    /// What `rules` look at.
    pub(crate) fn of(rules: &Rules) -> Self {
        Self {
            scores: rules.use_scores(),
            prompts: rules.layers_ahead_in(Phase::Prefill),
            decode: rules.layers_ahead_in(Phase::Decode),
        }
    }

    /// Whether routers have to be read at all.
    pub(crate) fn any(self) -> bool {
        self.scores || self.prompts > 0 || self.decode > 0
    }

    fn layers_ahead_in(self, phase: Phase) -> usize {
        if phase == Phase::Prefill { self.prompts.into() } else { self.decode.into() }
    }
}

impl Predictor {
    pub(crate) fn new(gates: Arc<Gates>, wants: Wants) -> Self {
        let experts = gates.experts();
        Self {
            gates,
            wants,
            logits: Vec::new(),
            order: Vec::new(),
            groups: Vec::new(),
            loads: vec![0; experts],
            confidence: vec![0.0; experts],
            scores: Vec::new(),
            predictions: Vec::new(),
            pending: Vec::new(),
            accuracy: PredictionAccuracy::default(),
        }
    }

    /// Looks at `block`, whose distinct experts are `routed`; what was seen of the one
    /// before is forgotten. Where it cannot (the work was cancelled, or the experts read
    /// other rows than the router) nothing is seen: a guess never ends a step.
    pub(crate) fn look(
        &mut self,
        phase: Phase,
        block: &ExpertBlock<'_>,
        routed: &[u16],
        cpu: &mut CpuUnit,
    ) {
        self.compare(block.layer() as usize, routed);
        self.scores.clear();
        self.predictions.clear();
        if self.try_look(phase, block, cpu).is_err() {
            self.scores.clear();
            self.predictions.clear();
        }
        self.pending.extend((1..).zip(self.predictions.iter().cloned()));
    }

    fn try_look(
        &mut self,
        phase: Phase,
        block: &ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<(), ProjectError> {
        let layer = block.layer() as usize;
        if self.wants.scores {
            self.average_scores(layer, block, cpu)?;
        }
        let coming = self.gates.known_from(layer + 1, self.wants.layers_ahead_in(phase));
        if coming.is_empty() {
            return Ok(());
        }
        let begun = now();
        let predicted = self.predict(coming, block, cpu);
        self.accuracy.time += begun.elapsed();
        predicted
    }

    /// Router scores of all experts of the layer, averaged over its tokens.
    pub(crate) fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// Loads expected of the next layers, the nearest first; none after the last.
    pub(crate) fn predictions(&self) -> &[Prediction] {
        &self.predictions
    }

    /// How good predictions have been.
    pub(crate) fn accuracy(&self) -> PredictionAccuracy {
        self.accuracy
    }

    fn compare(&mut self, layer: usize, routed: &[u16]) {
        let ahead = &mut self.accuracy.ahead;
        self.pending.retain(|(distance, prediction)| {
            let is_due = usize::from(prediction.layer) == layer;
            if is_due && let Some(guessed) = ahead.get_mut(distance - 1) {
                let right = prediction.loads.iter().filter(|(expert, _)| routed.contains(expert));
                guessed.right += right.count() as u64;
                guessed.predicted += prediction.loads.len() as u64;
            }
            // What is further away than it was made for is of a pass that was given up.
            let after = usize::from(prediction.layer).saturating_sub(layer);
            after > 0 && after < *distance
        });
    }

    fn average_scores(
        &mut self,
        layer: usize,
        block: &ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<(), ProjectError> {
        let Some(rows) = self.gates.rows(layer) else { return Ok(()) };
        cpu.project(block, rows, &mut self.logits)?;
        self.scores.resize(self.gates.experts(), 0.0);
        for token in self.logits.chunks_exact_mut(self.gates.experts()) {
            self.gates.score(layer, token);
            self.scores.iter_mut().zip(token).for_each(|(sum, score)| *sum += *score);
        }
        let tokens = block.tokens() as f32;
        self.scores.iter_mut().for_each(|sum| *sum /= tokens);
        Ok(())
    }

    /// The routers of the `coming` layers on this layer's rows, all in one product: layers change
    /// rows little, so most of their choice is right, of the nearest most.
    fn predict(
        &mut self,
        coming: Range<usize>,
        block: &ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<(), ProjectError> {
        let Some(rows) = self.gates.rows_of(coming.clone()) else { return Ok(()) };
        cpu.project(block, rows, &mut self.logits)?;
        for (at, layer) in coming.clone().enumerate() {
            self.expect(layer, at, coming.len());
        }
        Ok(())
    }

    /// Loads of `layer`, whose logits are at `at` of `layers` of each token.
    fn expect(&mut self, layer: usize, at: usize, layers: usize) {
        self.loads.fill(0);
        self.confidence.fill(0.0);
        let (experts, used) = (self.gates.experts(), self.gates.used());
        for token in self.logits.chunks_exact_mut(experts).skip(at).step_by(layers) {
            self.gates.score(layer, token);
            self.gates.bias_choice(layer, token);
            self.gates.limit_groups(token, &mut self.groups);
            choose(token, used, &mut self.order);
            for &expert in &self.order {
                self.loads[usize::from(expert)] += 1;
                self.confidence[usize::from(expert)] += token[usize::from(expert)];
            }
        }
        let expected = self.loads.iter().enumerate().filter(|(_, tokens)| **tokens > 0);
        let mut loads: Vec<(u16, u32)> =
            expected.map(|(expert, &tokens)| (expert as u16, tokens)).collect();
        let confidence = |(expert, _): &(u16, u32)| self.confidence[usize::from(*expert)];
        loads.sort_by(|a, b| confidence(b).total_cmp(&confidence(a)));
        self.predictions.push(Prediction { layer: layer as u16, loads });
    }
}

/// The `used` highest of `scores` into `chosen`, in no order.
fn choose(scores: &[f32], used: usize, chosen: &mut Vec<u16>) {
    chosen.clear();
    chosen.extend(0..scores.len() as u16);
    if used < chosen.len() {
        let higher = |a: &u16, b: &u16| scores[usize::from(*b)].total_cmp(&scores[usize::from(*a)]);
        chosen.select_nth_unstable_by(used, higher);
        chosen.truncate(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, EngineOptions, Runtime, Seam, ThreadSet, ThreadSets};
    use motley_ggml::{
        Batch, BatchToken, BlockError, BlockExecutor, Claims, ComputeOutcome, Context,
        ContextOptions, PoolChoice, Way,
    };
    use motley_testkit::synth::Arch;
    use std::sync::Mutex;

    #[test]
    fn the_highest_are_chosen() {
        let mut chosen = Vec::new();
        choose(&[0.1, 0.9, -3.0, 0.5], 2, &mut chosen);
        chosen.sort_unstable();
        assert_eq!(chosen, [1, 3]);
        choose(&[0.1, f32::NAN, 0.9], 2, &mut chosen);
        assert_eq!(chosen.len(), 2);
        choose(&[0.1, 0.9], 8, &mut chosen);
        assert_eq!(chosen, [0, 1]);
    }

    /// Runs blocks as llama.cpp would, and compares its choice with the gates'.
    struct Compare {
        gates: Gates,
        logits: Vec<f32>,
        /// (rows compared, rows alike)
        rows: Arc<Mutex<(u32, u32)>>,
    }

    impl BlockExecutor for Compare {
        fn execute(
            &mut self,
            block: &mut ExpertBlock<'_>,
            cpu: &mut CpuUnit,
        ) -> Result<ComputeOutcome, BlockError> {
            let layer = block.layer() as usize;
            let rows = self.gates.rows(layer).expect("every layer of this model has a router");
            cpu.project(block, rows, &mut self.logits).expect("the router is as wide as the rows");
            let mut chosen = Vec::new();
            for (token, row) in self.logits.chunks_exact_mut(self.gates.experts()).enumerate() {
                self.gates.score(layer, row);
                self.gates.bias_choice(layer, row);
                self.gates.limit_groups(row, &mut Vec::new());
                choose(row, self.gates.used(), &mut chosen);
                let mut routed: Vec<u16> =
                    (0..block.slots()).map(|slot| block.expert(token, slot) as u16).collect();
                chosen.sort_unstable();
                routed.sort_unstable();
                let mut rows = self.rows.lock().expect("nobody panics with this lock");
                rows.0 += 1;
                rows.1 += u32::from(chosen == routed);
            }
            Ok(cpu.compute(block, Way::Whole).expect("a whole block"))
        }
    }

    fn routers_agree(arch: Arch) {
        let Some(path) = motley_testkit::fixtures::synthetic(arch) else { return };
        let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
        let options = EngineOptions {
            threads: ThreadSets::both(ThreadSet::anywhere(1)),
            ..EngineOptions::default()
        };
        let engine = Engine::load(runtime, &path, &options, &mut |_| true).expect("it loads");
        let rows = Arc::new(Mutex::new((0, 0)));
        let file = motley_model::OpenedFile::open(&path).expect("it was opened before");
        let gates = Gates::read(engine.spec(), &[file]).expect("the routers are there");
        let compare = Compare { gates, logits: Vec::new(), rows: Arc::clone(&rows) };
        let shape = ContextOptions {
            context_tokens: 256,
            kv: motley_model::KvType::F16,
            windows: false,
            batch_tokens: 64,
            sequences: 1,
            unified: false,
            precise_attention: false,
            pooling: None,
        };
        let (model, pools) = engine.parts();
        let mut context =
            Context::new(model, &shape, pools, (Box::new(compare), Claims::all())).expect("room");
        let mut batch = Batch::with_capacity(64);
        for position in 0..64 {
            let token = position * 97;
            batch.push(BatchToken { token, position, sequence: 0, logits: true });
        }
        context.decode(&batch, PoolChoice::Prefill).expect("it runs");
        let (compared, alike) = *rows.lock().expect("nobody panics with this lock");
        assert_eq!(compared, 3 * 64);
        assert!(alike >= compared * 99 / 100, "{alike} of {compared} choices predicted");
    }

    #[test]
    fn a_softmax_router_is_understood() {
        routers_agree(Arch::Qwen3moe);
    }

    #[test]
    fn a_router_with_biases_is_understood() {
        routers_agree(Arch::GptOss);
    }
}
