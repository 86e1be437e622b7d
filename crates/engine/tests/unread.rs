//! Experts left on disk under an executor that reads none: the decode fails with the reason. Their
//! place in memory holds zeros, which would be an answer like any other.

use motley_ggml::{
    Batch, BatchToken, BlockError, BlockExecutor, Claims, ComputeOutcome, Context, ContextOptions,
    CpuUnit, Cut, DecodeError, ExpertBlock, Model, ModelOptions, PoolChoice, Pools, Runtime, Seam,
    Threadpool, ThreadpoolOptions, VirtualFile, Way, Weights,
};
use motley_model::{ModelSpec, Role, TensorPart};
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::path::Path;
use std::sync::Arc;

/// Computes whatever is there, in both ways.
struct Whatever;

impl BlockExecutor for Whatever {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        for way in [Way::Whole, Way::Blocks(Cut::of(8))] {
            let some = cpu.compute_rows(block, &[(0, 0)], way).expect("rows there are");
            let all = cpu.compute(block, way).expect("a block");
            assert_eq!((some, all), (ComputeOutcome::Failed, ComputeOutcome::Failed));
        }
        Ok(ComputeOutcome::Done)
    }
}

fn load(path: &Path) -> Model {
    let (spec, files) = ModelSpec::open(path).expect("it reads");
    let routed = |role| matches!(role, Role::Routed { part: TensorPart::Weight, .. });
    let skipped = spec.tensors.iter().map(|tensor| routed(tensor.role)).collect();
    let handles = files.opened.iter().map(|file| file.file().try_clone().expect("a handle"));
    let file = VirtualFile::new(files.layout().expect("one file"), handles.collect(), skipped);
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let options =
        ModelOptions { repack: false, gpus: Vec::new(), gpu_layers: 0, gpu_experts: false };
    Model::load(runtime, Weights::Reserved(file), &options, &mut |_| true).expect("it loads")
}

#[test]
fn experts_that_nobody_read_fail_the_decode_and_say_so() {
    let Some(path) = synthetic(Arch::Qwen3moe) else { return };
    let pool = Arc::new(Threadpool::new(&ThreadpoolOptions::with_threads(1)).expect("a thread"));
    let pools = Pools { decode: Arc::clone(&pool), prefill: pool };
    let shape = ContextOptions {
        context_tokens: 256,
        batch_tokens: 64,
        sequences: 1,
        unified: false,
        kv: motley_model::KvType::F16,
        windows: false,
        precise_attention: false,
        pooling: None,
    };
    let model = Arc::new(load(&path));
    let mut context =
        Context::new(model, &shape, pools, (Box::new(Whatever), Claims::all())).expect("a context");
    let mut batch = Batch::with_capacity(1);
    batch.push(BatchToken { token: 5, position: 0, sequence: 0, logits: true });
    match context.decode(&batch, PoolChoice::Decode) {
        Err(DecodeError::Executor(error)) => assert!(error.reason.contains("on disk"), "{error}"),
        other => panic!("zeros were computed with: {other:?}"),
    }
}
