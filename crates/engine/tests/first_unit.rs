//! A unit that takes rows before the others: a block computed in two halves by rows has the bits of
//! the whole, with weights as they are in the file, with rearranged ones, and beside a device.

use motley_engine::blocks::first_unit::FirstUnit;
use motley_engine::blocks::machine::{DeviceOptions, DeviceRoom};
use motley_engine::{
    Engine, EngineOptions, GpuDevice, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets,
};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock, Way};
use motley_sched::Phase;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Takes every other row, and the whole of the first layer it meets.
struct Halves {
    blocks: Arc<AtomicU64>,
    whole: Option<u32>,
}

impl FirstUnit for Halves {
    fn begin(
        &mut self,
        _: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<bool, String> {
        if block.tokens() < 2 {
            return Ok(false);
        }
        let all = block.rows().map(|(token, slot, _)| (token, slot));
        let whole = *self.whole.get_or_insert(block.layer()) == block.layer();
        let rows: Vec<_> = all.step_by(if whole { 1 } else { 2 }).collect();
        let outcome =
            cpu.compute_rows(block, &rows, Way::Whole).map_err(|error| error.to_string())?;
        assert_eq!(outcome, ComputeOutcome::Done);
        rows.iter().for_each(|&(token, slot)| block.set_aside(token, slot));
        Ok(true)
    }

    fn finish(&mut self, _: &mut ExpertBlock<'_>) -> Result<bool, String> {
        self.blocks.fetch_add(1, Relaxed);
        Ok(false)
    }
}

fn logits(engine: &Engine) -> Vec<f32> {
    let mut session = engine.session(&SessionOptions::default()).expect("a session");
    session.prefill(&(100..200).collect::<Vec<_>>()).expect("it runs");
    session.decode(7).expect("it runs");
    session.logits().to_vec()
}

/// Room for half of the experts.
fn device(runtime: &Runtime) -> DeviceOptions {
    let room = DeviceRoom { device: GpuDevice::cpu(runtime), budget_bytes: Some(8 << 20) };
    DeviceOptions::over(vec![room])
}

#[test]
fn halves_have_the_bits_of_the_whole() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let plain = |arch| (arch, false, false);
    let ways = [
        plain(Arch::Qwen3moe),
        (Arch::Qwen3moe, true, false),
        plain(Arch::GptOss),
        (Arch::Qwen3moe, false, true),
        (Arch::GptOss, false, true),
    ];
    for (arch, repack, beside_device) in ways {
        let Some(model) = synthetic(arch) else { return };
        let options = EngineOptions {
            threads: ThreadSets::both(ThreadSet::anywhere(1)),
            repack,
            devices: beside_device.then(|| device(&runtime)),
            ..EngineOptions::default()
        };
        let mut engine =
            Engine::load(runtime, &model, &options, &mut |_| true).expect("the model loads");
        let expected = logits(&engine);
        let blocks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&blocks);
        engine.set_first_unit(Arc::new(move |_| {
            Box::new(Halves { blocks: Arc::clone(&counted), whole: None })
        }));
        assert!(logits(&engine) == expected, "{arch:?}, repack {repack}, {beside_device}");
        if beside_device {
            let report = engine.devices().expect("a device").report();
            assert!(report.figures.device_pairs > 0, "{report:?}");
        }
        // The last layer of a prompt may compute its last token only.
        let layers = engine.spec().expert_layers().count() as u64;
        let taken = blocks.load(Relaxed);
        assert!((layers - 1..=layers).contains(&taken), "{arch:?}: {taken} of {layers}");
    }
}
