//! A unit beside the CPU: a block computed in two halves by rows has the bits of the
//! whole, with weights as they are in the file and with rearranged ones.

use motley_engine::blocks::helper::BlockHelper;
use motley_engine::{Engine, EngineOptions, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock, Way};
use motley_plan::ExpertKernels;
use motley_sched::Phase;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Computes even rows, then odd ones.
struct Halves(Arc<AtomicU64>);

impl BlockHelper for Halves {
    fn run(
        &mut self,
        _: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        _: &ExpertKernels,
    ) -> Result<Option<ComputeOutcome>, String> {
        if block.tokens() < 2 {
            return Ok(None);
        }
        for half in 0..2 {
            let tokens = 0..block.tokens();
            let all = tokens.flat_map(|token| (0..block.slots()).map(move |slot| (token, slot)));
            let rows: Vec<_> = all.skip(half).step_by(2).collect();
            let outcome =
                cpu.compute_rows(block, &rows, Way::Whole).map_err(|error| error.to_string())?;
            assert_eq!(outcome, ComputeOutcome::Done);
            self.0.fetch_add(1, Relaxed);
        }
        Ok(Some(ComputeOutcome::Done))
    }
}

fn logits(engine: &Engine) -> Vec<f32> {
    let mut session = engine.session(&SessionOptions::default()).expect("a session");
    session.prefill(&(100..200).collect::<Vec<_>>()).expect("it runs");
    session.decode(7).expect("it runs");
    session.logits().to_vec()
}

#[test]
fn halves_have_the_bits_of_the_whole() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    for (arch, repack) in [(Arch::Qwen3moe, false), (Arch::Qwen3moe, true), (Arch::GptOss, false)] {
        let Some(model) = synthetic(arch) else { return };
        let options = EngineOptions {
            threads: ThreadSets::both(ThreadSet::anywhere(1)),
            repack,
            ..EngineOptions::default()
        };
        let mut engine =
            Engine::load(runtime, &model, &options, &mut |_| true).expect("the model loads");
        let expected = logits(&engine);
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        engine.set_helper(Arc::new(move || Box::new(Halves(Arc::clone(&counted)))));
        assert!(logits(&engine) == expected, "{arch:?}, repack {repack}");
        // The last layer of a prompt may compute its last token only.
        let layers = engine.spec().expert_layers().count() as u64;
        let halves = calls.load(Relaxed);
        assert!(
            (2 * (layers - 1)..=2 * layers).contains(&halves),
            "{arch:?}: {halves} of {layers}"
        );
    }
}
