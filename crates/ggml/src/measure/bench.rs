//! Routed experts without a model: a stack of synthetic experts and blocks over them, computed by
//! ggml's own kernels. For measuring; times nothing itself and its results mean nothing.
//!
//! A block is what a model's graph has, `gate | up · SwiGLU · down` through `MUL_MAT_ID`, with
//! `[1, rows]` ids: `experts` neighbours of the stack with `tokens` rows each. Which
//! neighbours is chosen per run, so that weights come from memory and not from a cache.

use super::synthetic::{self, bell, set};
use crate::compute::blocks::Way;
use crate::compute::outcome::ComputeOutcome;
use crate::compute::stream::{CpuStream, Stream};
use crate::compute::tensors::{Buffer, Tensors};
use crate::compute::threadpool::{CurrentPool, Threadpool, occupy};
use crate::compute::unit::CpuUnit;
use crate::gpu::device::GpuDevice;
use crate::layout::memory::LaidOutMemory;
use crate::layout::stack::one_of;
use crate::layout::{Layout, MatrixShape, product_by_id};
use crate::seam::block::ExpertBlock;
use crate::seam::runtime::Runtime;
use llama_cpp_sys_2 as sys;
use motley_model::gguf::GgmlType;
use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::Arc;

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

/// Experts in memory, and what computes them.
pub struct ExpertStack {
    spec: StackSpec,
    /// Gate, up, down.
    weights: [*mut sys::ggml_tensor; 3],
    /// Where rows lie.
    rows: sys::ggml_backend_buffer_type_t,
    unit: StackUnit,
    _buffer: Buffer,
    _tensors: Tensors,
    _memory: Option<LaidOutMemory>,
}

/// Where blocks are computed.
enum StackUnit {
    /// As a session computes them. The unit's backend holds the pool's address.
    Cpu { unit: Box<RefCell<CpuUnit>>, current: Arc<CurrentPool>, pool: Arc<Threadpool> },
    /// On a device's own kernels.
    Device(Stream),
}

impl ExpertStack {
    /// Makes the experts: a few rows of bell-shaped weights, quantised by ggml, repeated.
    /// Blocks run on all threads of `pool`.
    pub fn new(_: &Runtime, spec: StackSpec, pool: Arc<Threadpool>) -> Result<Self, BenchError> {
        let (tensors, weights) = tensors_of(&spec)?;
        let StackSpec { hidden, intermediate, ty, layout, .. } = spec;
        let offers = |row, rows| layout.bytes(&MatrixShape { ty, row, rows }).is_some();
        if !offers(hidden, intermediate) || !offers(intermediate, hidden) {
            return Err(BenchError::NoLayout { ty });
        }
        let no_memory = BenchError::Memory { bytes: bytes_of(&spec) };
        let mut memory = LaidOutMemory::new(None);
        let buffer = tensors.allocate(memory.buffer_type()).ok_or(no_memory)?;
        // SAFETY: the tensors are live; a tensor is plain data.
        let experts = weights.map(|weight| synthetic::weights(&one_of(unsafe { &*weight })));
        let read = move |name: &str, _: usize, bytes: &mut [u8]| {
            let index = NAMES.iter().position(|known| known.to_bytes() == name.as_bytes());
            bytes.copy_from_slice(&experts[index.unwrap_or(0)]);
            Ok(())
        };
        let threads = pool.threads() as usize;
        memory.fill(&move |_, _| layout, &read, threads, &mut |_| true).map_err(|_| no_memory)?;
        let current = Arc::<CurrentPool>::default();
        let stream = CpuStream::new(Arc::clone(&current)).ok_or(no_memory)?;
        let unit = StackUnit::Cpu {
            unit: Box::new(RefCell::new(CpuUnit::new(stream))),
            current,
            pool: Arc::clone(&pool),
        };
        // SAFETY: returns a static of ggml's.
        let rows = unsafe { sys::ggml_backend_cpu_buffer_type() };
        let _memory = Some(memory);
        let mut stack =
            Self { spec, weights, rows, unit, _buffer: buffer, _tensors: tensors, _memory };
        stack.set_pool(pool);
        Ok(stack)
    }

    /// The same in a device's memory and on its kernels; the layout must be plain.
    pub fn on_device(device: &GpuDevice, spec: StackSpec) -> Result<Self, BenchError> {
        let stream = device.stream().ok_or(BenchError::NoDevice)?;
        let (tensors, weights) = tensors_of(&spec)?;
        let asked = Tensors::new(16).ok_or(BenchError::Memory { bytes: 0 })?;
        // SAFETY: the tensors are live, those of the question as long as `asked`.
        let computes = |weight: &*mut sys::ggml_tensor| unsafe {
            device.computes(product_by_id(&asked, *weight))
        };
        if spec.layout != Layout::Plain || !weights.iter().all(computes) {
            return Err(BenchError::NoLayout { ty: spec.ty });
        }
        let rows = device.buffer_type();
        let buffer = tensors.allocate(rows).ok_or(BenchError::Memory { bytes: bytes_of(&spec) })?;
        for weight in weights {
            // SAFETY: the tensor is live; a tensor is plain data.
            let bytes = synthetic::weights(unsafe { &*weight });
            set(weight, bytes.as_ptr().cast(), bytes.len());
        }
        let unit = StackUnit::Device(stream);
        Ok(Self { spec, weights, rows, unit, _buffer: buffer, _tensors: tensors, _memory: None })
    }

    /// Runs blocks on another pool from now on.
    ///
    /// # Panics
    /// When the stack is on a device.
    pub fn set_pool(&mut self, new: Arc<Threadpool>) {
        let StackUnit::Cpu { unit, current, pool } = &mut self.unit else {
            panic!("a device has no threads of ours");
        };
        let occupied = occupy([&*pool, &new]);
        current.set(&new);
        let stream = unit.get_mut().stream_mut();
        stream.set_threads(new.threads() as i32);
        // The pool before is still live, which ggml pauses when it meets the new one.
        stream.adopt_pool();
        drop(occupied);
        *pool = new;
    }

    /// Bytes of one expert's three matrices.
    pub fn expert_bytes(&self) -> u64 {
        bytes_of(&self.spec) / u64::from(self.spec.experts)
    }

    /// A block of `experts` experts with `tokens` rows each, computed in this way; devices know
    /// one way only.
    pub fn block(&self, experts: u32, tokens: u32, way: Way) -> Result<BenchBlock<'_>, BenchError> {
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
            way,
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

/// A graph over some experts of a stack, ready to run again and again.
pub struct BenchBlock<'s> {
    stack: &'s ExpertStack,
    way: Way,
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
        match &self.stack.unit {
            StackUnit::Cpu { unit, pool, .. } => {
                let _occupied = occupy([pool]);
                // SAFETY: the graph and all it points at live as long as the block.
                let block = unsafe { ExpertBlock::parse(self.graph) };
                let mut block = block.expect("gate, up and down of one layer");
                let outcome = unit.borrow_mut().compute(&mut block, self.way);
                outcome.unwrap_or(ComputeOutcome::Failed)
            }
            StackUnit::Device(stream) => {
                self.upload();
                // SAFETY: backend and graph are live; the stack is not `Sync`, so runs of its
                // blocks come one after the other.
                let status = unsafe { sys::ggml_backend_graph_compute(stream.raw(), self.graph) };
                self.output();
                ComputeOutcome::of(status)
            }
        }
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

/// What a model calls them.
const NAMES: [&CStr; 3] =
    [c"blk.0.ffn_gate_exps.weight", c"blk.0.ffn_up_exps.weight", c"blk.0.ffn_down_exps.weight"];

/// Gate, up and down of all experts, without memory.
fn tensors_of(spec: &StackSpec) -> Result<(Tensors, [*mut sys::ggml_tensor; 3]), BenchError> {
    let StackSpec { hidden, intermediate, ty, .. } = *spec;
    let fits = |row: u32| ty.row_bytes(u64::from(row)).is_some_and(|bytes| bytes > 0);
    if !fits(hidden) || !fits(intermediate) || spec.experts == 0 {
        return Err(BenchError::Shape { hidden, intermediate, ty });
    }
    let tensors = Tensors::new(8).ok_or(BenchError::Memory { bytes: 0 })?;
    let (h, i, e) = (hidden.into(), intermediate.into(), spec.experts.into());
    let weights =
        [(h, i), (h, i), (i, h)].map(|(row, rows)| tensors.tensor(ty.id(), [row, rows, e]));
    for (weight, name) in weights.iter().zip(NAMES) {
        // SAFETY: the tensor is live, the name ends with NUL.
        unsafe { sys::ggml_set_name(*weight, name.as_ptr()) };
    }
    Ok((tensors, weights))
}

/// Bytes of all experts in the file's order.
fn bytes_of(spec: &StackSpec) -> u64 {
    let weights = 3 * u64::from(spec.hidden) * u64::from(spec.intermediate);
    weights / spec.ty.block_elements() * spec.ty.block_bytes() * u64::from(spec.experts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::blocks::Cut;
    use crate::compute::threadpool::ThreadpoolOptions;
    use crate::layout::nodes::{NodeShare, Nodes};
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
        rows_by(stack, first, Way::Whole)
    }

    fn rows_by(stack: &ExpertStack, first: u32, way: Way) -> Vec<f32> {
        let mut block = stack.block(2, 3, way).unwrap();
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
        let mut block = there.block(2, 3, Way::Whole).unwrap();
        block.choose(1);
        assert_eq!(block.run(), ComputeOutcome::Done);
        assert_eq!(block.output(), rows(&here, 1));
        let rearranged = StackSpec { layout: Layout::Repacked, ..here.spec };
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
            for layout in Layout::ALL {
                let mut other = match stack(ty, layout) {
                    Err(error) => {
                        assert_eq!(error, BenchError::NoLayout { ty });
                        continue;
                    }
                    Ok(other) => other,
                };
                // One thread and two take pieces apart, five share them.
                for (threads, block_rows) in [(2, 8), (1, 2), (5, 8), (5, 1)] {
                    other.set_pool(pool(threads));
                    let rearranged = Cut { block_rows, rearrange_from: Some(2) };
                    let cuts = [Cut::of(block_rows), rearranged].map(Way::Blocks);
                    for way in [Way::Whole].into_iter().chain(cuts) {
                        let found = rows_by(&other, 3, way);
                        let off = found.iter().zip(&plain).map(|(a, b)| (a - b).abs());
                        let off = off.sum::<f32>() / plain.len() as f32;
                        assert!(off < 0.05 * size, "{ty} {layout:?} {way:?}: {off} of {size}");
                    }
                }
            }
        }
    }

    #[test]
    fn nodes_change_no_bit() {
        for layout in Layout::ALL {
            let Ok(mut stack) = stack(GgmlType::Q4_0, layout) else { continue };
            let way = Way::Blocks(Cut::of(2));
            let one = rows_by(&stack, 3, way);
            let share = |cpus: Vec<usize>| NodeShare { id: 0, cpus, part: 0.5 };
            for cpus in [vec![], vec![0]] {
                let StackUnit::Cpu { unit, .. } = &mut stack.unit else { panic!("on the CPU") };
                let two = Nodes::new(vec![share(cpus), share(vec![1])]).map(Arc::new);
                unit.get_mut().stream_mut().set_nodes(two);
                assert_eq!(rows_by(&stack, 3, way), one, "{layout:?}");
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
