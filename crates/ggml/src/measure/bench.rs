//! Routed experts without a model: a stack of synthetic experts and blocks over them, computed by
//! ggml's own kernels. For measuring; times nothing itself and its results mean nothing.
//!
//! A block is what a model's graph has, `gate | up · SwiGLU · down` through `MUL_MAT_ID`, with
//! `[1, rows]` ids: `experts` neighbours of the stack with `tokens` rows each. Which
//! neighbours is chosen per run, so that weights come from memory and not from a cache.

use super::synthetic::{bell, fill, set};
use crate::compute::cpu;
use crate::compute::outcome::ComputeOutcome;
use crate::compute::stream::Stream;
use crate::compute::tensors::{Buffer, Tensors};
use crate::compute::threadpool::{Threadpool, occupy};
use crate::gpu::device::GpuDevice;
use crate::seam::runtime::Runtime;
use llama_cpp_sys_2 as sys;
use motley_model::gguf::GgmlType;
use std::ptr::null_mut;
use std::sync::Arc;

/// How weights lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// In the file's own order, as in the slots of an arena.
    Plain,
    /// Rearranged for this CPU (ggml's repacking), as when llama.cpp holds them.
    Rearranged,
}

/// A stack of equal experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSpec {
    /// Width of a hidden row.
    pub hidden: u32,
    /// Width between up and down.
    pub intermediate: u32,
    /// Experts in the stack.
    pub experts: u32,
    /// Storage of all three matrices.
    pub ty: GgmlType,
    /// How they lie in memory.
    pub layout: Layout,
}

/// Why a stack or a block cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A width is not a multiple of the type's block.
    #[error("rows of {hidden} and {intermediate} do not divide into blocks of {ty}")]
    Shape {
        /// Width of a hidden row.
        hidden: u32,
        /// Width between up and down.
        intermediate: u32,
        /// Its blocks are what the widths have to be multiples of.
        ty: GgmlType,
    },
    /// This CPU or build rearranges no weights of the type.
    #[error("this CPU has no rearranged layout for {ty}")]
    NoLayout {
        /// The one asked for.
        ty: GgmlType,
    },
    /// No device of that name in this build and machine.
    #[error("ggml has no such device")]
    NoDevice,
    /// The system gave no memory.
    #[error("no memory for {bytes} bytes of experts")]
    Memory {
        /// Asked for.
        bytes: u64,
    },
}

/// Experts in memory, and the backend that computes them.
pub struct ExpertStack {
    spec: StackSpec,
    /// Gate, up, down.
    weights: [*mut sys::ggml_tensor; 3],
    /// Where rows lie.
    rows: sys::ggml_backend_buffer_type_t,
    stream: Stream,
    /// The CPU's backend holds its address; a device has none.
    pool: Option<Arc<Threadpool>>,
    _buffer: Buffer,
    _tensors: Tensors,
}

impl ExpertStack {
    /// Makes the experts: a few rows of bell-shaped weights, quantised by ggml, repeated.
    /// Blocks run on all threads of `pool`.
    pub fn new(_: &Runtime, spec: StackSpec, pool: Arc<Threadpool>) -> Result<Self, BenchError> {
        // SAFETY: returns a static of ggml's.
        let rows = unsafe { sys::ggml_backend_cpu_buffer_type() };
        let stream = Stream::on_cpu().ok_or(BenchError::Memory { bytes: 0 })?;
        let place = |weights: &_| buffer_type(&spec, weights);
        let mut stack = Self::filled(spec, stream, rows, &place)?;
        stack.set_pool(pool);
        Ok(stack)
    }

    /// The same in a device's memory and on its kernels; the layout must be plain.
    pub fn on_device(device: &GpuDevice, spec: StackSpec) -> Result<Self, BenchError> {
        let stream = device.stream().ok_or(BenchError::NoDevice)?;
        let memory = device.buffer_type();
        let place = |weights: &[*mut sys::ggml_tensor; 3]| {
            let asked = Tensors::new(16).ok_or(BenchError::Memory { bytes: 0 })?;
            // SAFETY: the tensors are live, those of the question as long as `asked`.
            let computes = |weight: &*mut sys::ggml_tensor| unsafe {
                device.computes(question(&asked, *weight))
            };
            let takes = spec.layout == Layout::Plain && weights.iter().all(computes);
            takes.then_some(memory).ok_or(BenchError::NoLayout { ty: spec.ty })
        };
        Self::filled(spec, stream, memory, &place)
    }

    /// Experts with synthetic weights where `place` says.
    fn filled(
        spec: StackSpec,
        stream: Stream,
        rows: sys::ggml_backend_buffer_type_t,
        place: Place<'_>,
    ) -> Result<Self, BenchError> {
        let StackSpec { hidden, intermediate, ty, .. } = spec;
        let fits = |row: u32| ty.row_bytes(u64::from(row)).is_some_and(|bytes| bytes > 0);
        if !fits(hidden) || !fits(intermediate) || spec.experts == 0 {
            return Err(BenchError::Shape { hidden, intermediate, ty });
        }
        let tensors = Tensors::new(8).ok_or(BenchError::Memory { bytes: 0 })?;
        let (h, i, e) = (hidden.into(), intermediate.into(), spec.experts.into());
        let weights =
            [(h, i), (h, i), (i, h)].map(|(row, rows)| tensors.tensor(ty.id(), [row, rows, e]));
        let buffer_type = place(&weights)?;
        let bytes = ty.row_bytes(h as u64).unwrap_or(0) * 3 * i as u64 * e as u64;
        let buffer = tensors.allocate(buffer_type).ok_or(BenchError::Memory { bytes })?;
        weights.iter().for_each(|weight| fill(*weight));
        let (pool, _buffer, _tensors) = (None, buffer, tensors);
        Ok(Self { spec, weights, rows, stream, pool, _buffer, _tensors })
    }

    /// Runs blocks on another pool from now on.
    ///
    /// # Panics
    /// When the stack is on a device.
    pub fn set_pool(&mut self, pool: Arc<Threadpool>) {
        // SAFETY: returns a static of ggml's.
        let memory = unsafe { sys::ggml_backend_cpu_buffer_type() };
        assert_eq!(self.rows, memory, "a device has no threads of ours");
        let occupied = occupy(&self.pool);
        // SAFETY: ggml pauses the pool before, which is ours and live until the exchange below.
        unsafe {
            (cpu::procs().set_threads)(self.stream.raw(), pool.threads() as i32);
            (cpu::procs().set_threadpool)(self.stream.raw(), pool.raw());
        }
        drop(occupied);
        self.pool = Some(pool);
    }

    /// Bytes of one expert's three matrices.
    pub fn expert_bytes(&self) -> u64 {
        let StackSpec { hidden, intermediate, ty, .. } = self.spec;
        let weights = 3 * u64::from(hidden) * u64::from(intermediate);
        weights / ty.block_elements() * ty.block_bytes()
    }

    /// A block of `experts` experts with `tokens` rows each.
    pub fn block(&self, experts: u32, tokens: u32) -> Result<BenchBlock<'_>, BenchError> {
        let rows = i64::from(experts) * i64::from(tokens);
        let error = BenchError::Memory { bytes: rows as u64 * u64::from(self.spec.hidden) * 8 };
        let tensors = Tensors::new(16).ok_or(error)?;
        let input = tensors.tensor(sys::GGML_TYPE_F32, [self.spec.hidden.into(), 1, rows]);
        let ids = tensors.tensor(sys::GGML_TYPE_I32, [1, rows, 1]);
        let [gate, up, down] = self.weights;
        let context = tensors.raw();
        // SAFETY: all tensors belong to live contexts; shapes fit by construction.
        let (output, graph) = unsafe {
            let gate = sys::ggml_mul_mat_id(context, gate, input, ids);
            let up = sys::ggml_mul_mat_id(context, up, input, ids);
            let between = sys::ggml_swiglu_split(context, gate, up);
            let output = sys::ggml_mul_mat_id(context, down, between, ids);
            let graph = sys::ggml_new_graph(context);
            sys::ggml_build_forward_expand(graph, output);
            (output, graph)
        };
        let buffer = tensors.allocate(self.rows).ok_or(error)?;
        let mut block = BenchBlock {
            stack: self,
            experts,
            tokens,
            input,
            input_values: bell(rows as usize * self.spec.hidden as usize),
            ids,
            ids_values: vec![0; rows as usize],
            output,
            graph,
            _buffer: buffer,
            _tensors: tensors,
        };
        block.upload();
        Ok(block)
    }
}

/// Says where weights go.
type Place<'p> =
    &'p dyn Fn(&[*mut sys::ggml_tensor; 3]) -> Result<sys::ggml_backend_buffer_type_t, BenchError>;

/// A graph over some experts of a stack, ready to run again and again.
pub struct BenchBlock<'s> {
    stack: &'s ExpertStack,
    experts: u32,
    tokens: u32,
    input: *mut sys::ggml_tensor,
    input_values: Vec<f32>,
    ids: *mut sys::ggml_tensor,
    ids_values: Vec<i32>,
    output: *mut sys::ggml_tensor,
    graph: *mut sys::ggml_cgraph,
    _buffer: Buffer,
    _tensors: Tensors,
}

impl BenchBlock<'_> {
    /// Points the rows at experts `first`, `first + 1`, … of the stack, around its end.
    pub fn choose(&mut self, first: u32) {
        for (row, id) in self.ids_values.iter_mut().enumerate() {
            let expert = first + row as u32 / self.tokens.max(1);
            *id = (expert % self.stack.spec.experts) as i32;
        }
        set(self.ids, self.ids_values.as_ptr().cast(), size_of_val(self.ids_values.as_slice()));
    }

    /// Experts of the block.
    pub fn experts(&self) -> u32 {
        self.experts
    }

    fn upload(&mut self) {
        let values = self.input_values.as_slice();
        set(self.input, values.as_ptr().cast(), size_of_val(values));
    }

    /// Computes the block on the stack's pool. On a device with rows there and back, as a launch
    /// of the hybrid regime has them.
    pub fn run(&mut self) -> ComputeOutcome {
        if self.stack.pool.is_some() {
            return self.compute();
        }
        self.upload();
        let outcome = self.compute();
        self.output();
        outcome
    }

    fn compute(&mut self) -> ComputeOutcome {
        let _occupied = occupy(&self.stack.pool);
        // SAFETY: backend, its pool and the graph are live; the stack is not `Sync`, so runs of
        // its blocks come one after the other.
        let status =
            unsafe { sys::ggml_backend_graph_compute(self.stack.stream.raw(), self.graph) };
        ComputeOutcome::of(status)
    }

    /// The rows that came out, `[rows][hidden]`; meaningless, but equal for equal experts.
    pub fn output(&self) -> Vec<f32> {
        let mut rows = vec![0.0; self.ids_values.len() * self.stack.spec.hidden as usize];
        let bytes = size_of_val(rows.as_slice());
        // SAFETY: the tensor has exactly that many F32 values.
        unsafe { sys::ggml_backend_tensor_get(self.output, rows.as_mut_ptr().cast(), 0, bytes) };
        rows
    }
}

/// Where the weights of a layout lie: plain memory, or the first of the CPU's own buffer types
/// that computes `MUL_MAT_ID` with all of them (asked as llama.cpp's loader asks).
fn buffer_type(
    spec: &StackSpec,
    weights: &[*mut sys::ggml_tensor; 3],
) -> Result<sys::ggml_backend_buffer_type_t, BenchError> {
    if spec.layout == Layout::Plain {
        // SAFETY: returns a static of ggml's.
        return Ok(unsafe { sys::ggml_backend_cpu_buffer_type() });
    }
    // Input and ids of a question are not kept: their context ends with this call.
    let asked = Tensors::new(16).ok_or(BenchError::Memory { bytes: 0 })?;
    let suits = |buffer_type: &sys::ggml_backend_buffer_type_t| {
        [weights[0], weights[2]].iter().all(|weight| computes(&asked, *weight, *buffer_type))
    };
    let found = cpu::extra_buffer_types().into_iter().find(suits);
    found.ok_or(BenchError::NoLayout { ty: spec.ty })
}

/// Whether the CPU computes `MUL_MAT_ID` with a weight in that kind of buffer.
fn computes(
    asked: &Tensors,
    weight: *mut sys::ggml_tensor,
    buffer_type: sys::ggml_backend_buffer_type_t,
) -> bool {
    // SAFETY: an empty buffer stands for the real one while the question is asked, then the
    // weight is as before; all tensors are live.
    unsafe {
        let operation = question(asked, weight);
        let buffer = sys::ggml_backend_buft_alloc_buffer(buffer_type, 0);
        (*weight).buffer = buffer;
        let answer = sys::ggml_backend_dev_supports_op(cpu::device(), operation);
        (*weight).buffer = null_mut();
        sys::ggml_backend_buffer_free(buffer);
        answer
    }
}

/// One row through the weight.
///
/// # Safety
/// The weight must be live, and `asked` have room for three tensors.
unsafe fn question(asked: &Tensors, weight: *mut sys::ggml_tensor) -> *mut sys::ggml_tensor {
    // SAFETY: by the caller.
    let input = asked.tensor(sys::GGML_TYPE_F32, unsafe { [(*weight).ne[0], 1, 1] });
    let ids = asked.tensor(sys::GGML_TYPE_I32, [1, 1, 1]);
    // SAFETY: all are live, and of fitting shapes.
    unsafe { sys::ggml_mul_mat_id(asked.raw(), weight, input, ids) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::threadpool::ThreadpoolOptions;
    use crate::seam::runtime::Seam;

    fn stack(ty: GgmlType, layout: Layout) -> Result<ExpertStack, BenchError> {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let spec = StackSpec { hidden: 512, intermediate: 256, experts: 4, ty, layout };
        ExpertStack::new(&runtime, spec, pool(2))
    }

    fn pool(threads: u32) -> Arc<Threadpool> {
        Arc::new(Threadpool::new(&ThreadpoolOptions::with_threads(threads)).unwrap())
    }

    fn rows(stack: &ExpertStack, first: u32) -> Vec<f32> {
        let mut block = stack.block(2, 3).unwrap();
        block.choose(first);
        assert_eq!(block.run(), ComputeOutcome::Done);
        block.output()
    }

    #[test]
    fn a_device_computes_what_the_cpu_computes() {
        let here = stack(GgmlType::Q4_0, Layout::Plain).unwrap();
        let runtime = Runtime::start(Seam::Registered).unwrap();
        // The CPU stands in for a GPU: the same calls and bits.
        let there = ExpertStack::on_device(&GpuDevice::cpu(&runtime), here.spec).unwrap();
        let mut block = there.block(2, 3).unwrap();
        block.choose(1);
        assert_eq!(block.run(), ComputeOutcome::Done);
        assert_eq!(block.output(), rows(&here, 1));
        let rearranged = StackSpec { layout: Layout::Rearranged, ..here.spec };
        let error = ExpertStack::on_device(&GpuDevice::cpu(&runtime), rearranged).err();
        assert_eq!(error, Some(BenchError::NoLayout { ty: GgmlType::Q4_0 }));
    }

    #[test]
    fn every_type_computes_and_layouts_agree() {
        let types =
            [GgmlType::Q4_0, GgmlType::Q4_K, GgmlType::Q8_0, GgmlType::MXFP4, GgmlType::F16];
        for ty in types {
            let plain = rows(&stack(ty, Layout::Plain).unwrap(), 3);
            assert_eq!(plain.len(), 6 * 512);
            let size = plain.iter().map(|v| v.abs()).sum::<f32>() / plain.len() as f32;
            assert!(size.is_finite() && size > 0.0, "{ty}: {size}");
            match stack(ty, Layout::Rearranged) {
                Err(error) => assert_eq!(error, BenchError::NoLayout { ty }),
                Ok(rearranged) => {
                    let found = rows(&rearranged, 3);
                    let off = found.iter().zip(&plain).map(|(a, b)| (a - b).abs());
                    let off = off.sum::<f32>() / plain.len() as f32;
                    assert!(off < 0.05 * size, "{ty}: off by {off} of {size}");
                }
            }
        }
    }

    #[test]
    fn a_stack_changes_its_pool() {
        let mut stack = stack(GgmlType::Q8_0, Layout::Plain).unwrap();
        let two = rows(&stack, 1);
        stack.set_pool(pool(1));
        assert_eq!(rows(&stack, 1), two);
    }

    #[test]
    fn sizes_are_those_of_the_file() {
        let stack = stack(GgmlType::Q4_0, Layout::Plain).unwrap();
        assert_eq!(stack.expert_bytes(), 3 * 512 * 256 / 32 * 18);
    }

    #[test]
    fn rows_that_are_no_whole_blocks_are_refused() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let spec = StackSpec {
            hidden: 500,
            intermediate: 256,
            experts: 1,
            ty: GgmlType::Q4_K,
            layout: Layout::Plain,
        };
        assert!(matches!(ExpertStack::new(&runtime, spec, pool(1)), Err(BenchError::Shape { .. })));
    }
}
