//! Blocks kept beyond the graph they came from. A model whose weights are zeros computes one token;
//! what each layer asks of its experts is kept, and rows that come from elsewhere are computed by
//! the same operations, as blocks like any other.

use super::batch::{Batch, BatchToken};
use super::context::{Context, ContextError, ContextOptions, DecodeError, PoolChoice, Pools};
use super::model::Model;
use crate::api;
use crate::compute::graph::Graph;
use crate::compute::outcome::ComputeOutcome;
use crate::compute::packed::{Line, place_data};
use crate::compute::stream::CpuStream;
use crate::compute::threadpool::{CurrentPool, Threadpool, occupy};
use crate::compute::unit::CpuUnit;
use crate::gpu::template::{Template, empty_tensor};
use crate::seam::block::ExpertBlock;
use crate::seam::claim::Claims;
use crate::seam::executor::{BlockError, BlockExecutor};
use motley_model::KvType;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// KV cache of the context that computes the one token.
const CONTEXT_TOKENS: u32 = 64;

/// Why the blocks of a model cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("ggml gives no CPU backend")]
    NoCpu,
    /// Operations that cannot be computed apart from their graph.
    #[error("layer {layer}: {reason}")]
    Block { layer: u32, reason: String },
}

/// The blocks of a model, and the CPU that computes them.
pub struct KeptBlocks {
    layers: BTreeMap<u32, KeptBlock>,
    cpu: CpuUnit,
    pool: Arc<Threadpool>,
    /// Its tensors are read.
    _model: Arc<Model>,
}

/// Rows for one layer's experts.
#[derive(Debug, Clone, Copy)]
pub struct RowsIn<'a> {
    /// Expert of each row.
    pub experts: &'a [u32],
    /// Where each row's floats begin, in rows of `hidden`.
    pub places: &'a [u32],
    /// Rows of floats one after the other, each as wide as [`KeptBlocks::width`].
    pub hidden: &'a [f32],
}

impl KeptBlocks {
    /// Has `model` compute one token on `pools`, whatever it comes to, and keeps its blocks.
    pub fn of(model: Arc<Model>, pools: &Pools) -> Result<Self, KeepError> {
        let kept = Arc::new(Mutex::new(Seen::default()));
        let options = ContextOptions {
            context_tokens: CONTEXT_TOKENS,
            kv: KvType::F16,
            windows: false,
            batch_tokens: 1,
            sequences: 1,
            unified: false,
            precise_attention: false,
            pooling: None,
        };
        let executor = Box::new(Keeper(Arc::clone(&kept)));
        let (same, bound) = (Arc::clone(&model), (executor as Box<_>, Claims::all()));
        let mut context = Context::new(same, &options, pools.clone(), bound)?;
        let mut batch = Batch::with_capacity(1);
        batch.push(BatchToken { token: 0, position: 0, sequence: 0, logits: true });
        context.decode(&batch, PoolChoice::Decode)?;
        drop(context);
        let seen = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((layer, reason)) = seen.failed {
            return Err(KeepError::Block { layer, reason });
        }
        let pool = Arc::clone(&pools.decode);
        let current = Arc::<CurrentPool>::default();
        current.set(&pool);
        let mut stream = CpuStream::new(current).ok_or(KeepError::NoCpu)?;
        stream.set_threads(pool.threads() as i32);
        Ok(Self { layers: seen.layers, cpu: CpuUnit::new(stream), pool, _model: model })
    }

    /// Layers with blocks.
    pub fn layers(&self) -> impl Iterator<Item = u32> {
        self.layers.keys().copied()
    }

    /// Floats of a row that goes into `layer`, and of one that comes out of it.
    pub fn width(&self, layer: u32) -> Option<(usize, usize)> {
        self.layers.get(&layer).map(|block| (block.input_width, block.output_width))
    }

    /// Computes `rows` of `layer` with `executor`, into `out`: one row each, in their order.
    ///
    /// # Panics
    /// When there is no such layer, no row, or a place outside of `hidden`.
    pub fn run(
        &mut self,
        layer: u32,
        rows: RowsIn<'_>,
        executor: &mut dyn BlockExecutor,
        out: &mut Vec<f32>,
    ) -> Result<ComputeOutcome, BlockError> {
        let _occupied = occupy([&self.pool]);
        let block = self.layers.get_mut(&layer).expect("a layer with experts");
        block.run(rows, executor, &mut self.cpu, out)
    }
}

/// One layer's operations.
struct KeptBlock {
    layer: u32,
    template: Template,
    /// What the operations read beside rows, as the model has it.
    weights: Vec<*mut api::ggml_tensor>,
    input_width: usize,
    output_width: usize,
    graph: Graph,
    data: Vec<Line>,
}

// SAFETY: the addresses are of tensors of a model that lives as long as this, and which nobody
// changes; graph and scratch are its own.
unsafe impl Send for KeptBlock {}

impl KeptBlock {
    fn of(block: &ExpertBlock<'_>) -> Result<Self, String> {
        let (template, weights) = Template::with_originals(block).map_err(|e| e.to_string())?;
        Ok(Self {
            layer: block.layer(),
            input_width: block.hidden_width(),
            output_width: template.output_width(),
            template,
            weights: weights.into_iter().map(|tensor| tensor.cast_mut()).collect(),
            graph: Graph::new(),
            data: Vec::new(),
        })
    }

    fn run(
        &mut self,
        rows: RowsIn<'_>,
        executor: &mut dyn BlockExecutor,
        cpu: &mut CpuUnit,
        out: &mut Vec<f32>,
    ) -> Result<ComputeOutcome, BlockError> {
        let count = rows.experts.len();
        assert!(count > 0 && count == rows.places.len(), "rows with their experts");
        let mut experts: Vec<i32> = rows.experts.iter().map(|&expert| expert as i32).collect();
        let mut ids = ids_tensor(&mut experts);
        let mut tensors = self.template.make(count, &mut ids, &self.weights);
        place_data(&mut tensors, &mut self.data);
        fill(&mut tensors[0], rows);
        // All but the input; views too, which whoever clones the block looks for.
        self.graph.refill_with(tensors[1..].iter_mut().map(|tensor| &raw mut *tensor));
        // SAFETY: the graph's tensors, their data and all they read live until this returns.
        let parsed = unsafe { ExpertBlock::parse(self.graph.raw()) };
        let layer = self.layer;
        let mut block = parsed.map_err(|error| BlockError { layer, reason: error.to_string() })?;
        let outcome = executor.execute(&mut block, cpu)?;
        out.clear();
        out.reserve(count * self.output_width);
        for row in 0..count {
            out.extend_from_slice(block.output_row(row, 0));
        }
        Ok(outcome)
    }
}

/// `[1, rows]` numbers of experts.
fn ids_tensor(experts: &mut [i32]) -> api::ggml_tensor {
    let mut ids = empty_tensor();
    let (word, rows) = (size_of::<i32>(), experts.len());
    ids.type_ = api::GGML_TYPE_I32;
    ids.ne = [1, rows as i64, 1, 1];
    ids.nb = [word, word, word * rows, word * rows];
    ids.data = experts.as_mut_ptr().cast();
    ids
}

/// Copies the rows to where the operations read them.
fn fill(input: &mut api::ggml_tensor, rows: RowsIn<'_>) {
    let width = input.ne[0] as usize;
    for (row, &place) in rows.places.iter().enumerate() {
        let from = &rows.hidden[place as usize * width..][..width];
        // SAFETY: the input is F32 with one contiguous row per index, placed just now.
        let to = unsafe {
            let start = input.data.byte_add(row * input.nb[2]).cast::<f32>();
            std::slice::from_raw_parts_mut(start, width)
        };
        to.copy_from_slice(from);
    }
}

/// What the one token came by.
#[derive(Default)]
struct Seen {
    layers: BTreeMap<u32, KeptBlock>,
    failed: Option<(u32, String)>,
}

/// Keeps blocks; their rows stay as they are.
struct Keeper(Arc<Mutex<Seen>>);

impl BlockExecutor for Keeper {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        _: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match KeptBlock::of(block) {
            Ok(kept) => drop(seen.layers.insert(block.layer(), kept)),
            Err(reason) => seen.failed = Some((block.layer(), reason)),
        }
        for slot in 0..block.slots() {
            block.drop_row(0, slot);
        }
        Ok(ComputeOutcome::Done)
    }
}
