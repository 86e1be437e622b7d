//! A model's routed experts in layouts of our choice. While llama.cpp loads the model, their
//! tensors get reserved address space (`seam::reserve`) and are remembered; then the experts are
//! read and rearranged by several threads, and the model's tensors point at the result.

use super::nodes::Nodes;
use super::stack::Stack;
use super::{Layout, MatrixShape};
use crate::api;
use crate::api::abi::{Buffer, BufferType, Device};
use crate::seam::{claim, reserve};
use motley_model::gguf::GgmlType;
use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

/// Where an expert's bytes come from: (tensor's name, expert, its bytes in the file's order).
pub type ReadExpert = dyn Fn(&str, usize, &mut [u8]) -> io::Result<()> + Sync;

/// Which layout a tensor of this name and shape is to have.
pub type ChooseLayout = dyn Fn(&str, &MatrixShape) -> Layout;

/// Why experts were not laid out.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The system has no memory for them.
    #[error("no memory for the experts of {tensor} ({layout} layout)")]
    Memory { tensor: String, layout: &'static str },
    /// An expert cannot be read.
    #[error("{tensor}: expert {expert} cannot be read")]
    Read { tensor: String, expert: usize, source: io::Error },
    /// The progress callback asked to stop.
    #[error("loading was cancelled")]
    Cancelled,
}

/// The experts of one model. The model must be freed before.
pub(crate) struct LaidOutMemory {
    buft: *mut BufferType,
    shelf: *mut Device,
    nodes: Option<Arc<Nodes>>,
    /// Not to be moved: the model's tensors point at them.
    stacks: Vec<Stack>,
}

// SAFETY: the pointers are to what `new` made; nobody changes it but by `&mut` and the mutex inside.
unsafe impl Send for LaidOutMemory {}
// SAFETY: as above.
unsafe impl Sync for LaidOutMemory {}

impl std::fmt::Debug for LaidOutMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaidOutMemory").field("stacks", &self.stacks.len()).finish()
    }
}

/// The tensors of a model that lie in reserved space.
#[derive(Default)]
struct Reserved(Mutex<Vec<*mut api::ggml_tensor>>);

impl LaidOutMemory {
    /// Experts will be divided among `nodes`, if there are any.
    pub(crate) fn new(nodes: Option<Arc<Nodes>>) -> Self {
        let context = Box::into_raw(Box::<Reserved>::default()).cast();
        let (buft, shelf) = reserve::own_type(alloc_buffer, context);
        Self { buft, shelf, nodes, stacks: Vec::new() }
    }

    pub(crate) fn buffer_type(&self) -> api::ggml_backend_buffer_type_t {
        self.buft.cast()
    }

    /// Reads and rearranges all experts with `threads` threads; `on_progress` hears the share
    /// that is done and may stop it.
    pub(crate) fn fill(
        &mut self,
        choose: &ChooseLayout,
        read: &ReadExpert,
        threads: usize,
        on_progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<(), LayoutError> {
        let tensors = self.reserved();
        let mut work = Vec::new();
        for &tensor in &tensors {
            let (name, stack) = make(tensor, choose)?;
            // SAFETY: the model's tensor is live.
            let experts = unsafe { (*tensor).ne[2] as usize };
            self.stacks.push(stack);
            let index = self.stacks.len() - 1;
            work.extend((0..experts).map(|expert| (index, name.clone(), expert)));
        }
        self.divide();
        fill_all(&self.stacks, &work, read, threads, on_progress)?;
        for (&tensor, stack) in tensors.iter().zip(&self.stacks) {
            // SAFETY: the model is loaded and nobody computes with it yet.
            unsafe { hand_over(tensor, stack) };
        }
        Ok(())
    }

    pub(crate) fn nodes(&self) -> Option<Arc<Nodes>> {
        self.nodes.clone()
    }

    /// Best effort: experts elsewhere are computed all the same.
    fn divide(&self) {
        let Some(nodes) = &self.nodes else { return };
        if let Err(error) = self.stacks.iter().try_for_each(|stack| stack.divide(nodes)) {
            tracing::warn!("experts do not lie near the cores that compute them: {error}");
        }
    }

    /// Whether experts of some matrix of a layer are apart.
    pub(crate) fn is_apart(&self, layer: u32) -> bool {
        let of_layer = |tensor: &*mut api::ggml_tensor| {
            // SAFETY: the model's tensors live as long as the model, which is freed after us.
            unsafe { claim::layer_of(*tensor) == Some(layer) }
        };
        let mut stacks = self.reserved().into_iter().zip(&self.stacks);
        stacks.any(|(tensor, stack)| of_layer(&tensor) && stack.layout().is_apart())
    }

    /// Layouts there are, with the number of tensors.
    pub(crate) fn layouts(&self) -> Vec<(Layout, usize)> {
        let of = |layout| self.stacks.iter().filter(|stack| stack.layout() == layout).count();
        let counted = Layout::ALL.into_iter().map(|layout| (layout, of(layout)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    fn reserved(&self) -> Vec<*mut api::ggml_tensor> {
        // SAFETY: the context is what `new` made it.
        let reserved = unsafe { &*(*self.buft).context.cast::<Reserved>() };
        reserved.0.lock().expect("no panic holds this lock").clone()
    }
}

impl Drop for LaidOutMemory {
    fn drop(&mut self) {
        // SAFETY: all three were made in `new`; ggml is done with them when the model is freed.
        unsafe {
            drop(Box::from_raw((*self.buft).context.cast::<Reserved>()));
            drop(Box::from_raw(self.buft));
            drop(Box::from_raw(self.shelf));
        }
    }
}

/// The experts of `matrix` as tensors of their own, if they are laid out so.
///
/// # Safety
/// `matrix` is a live weight of a block.
pub(crate) unsafe fn apart<'s>(matrix: *const api::ggml_tensor) -> Option<&'s Stack> {
    // SAFETY: in reserved buffers `extra` is null or what `hand_over` put there, which lives as long as the model.
    unsafe {
        let ours = reserve::owns((*matrix).buffer) && !(*matrix).extra.is_null();
        ours.then(|| &*(*matrix).extra.cast::<Stack>())
    }
}

/// Points a model's tensor at its experts.
///
/// # Safety
/// The tensor is live and nobody computes with it; the stack outlives it.
pub(crate) unsafe fn hand_over(tensor: *mut api::ggml_tensor, stack: &Stack) {
    // SAFETY: by the caller.
    unsafe {
        match stack.whole() {
            Some(whole) => {
                ((*tensor).buffer, (*tensor).data) = (whole.buffer, whole.data);
                (*tensor).extra = whole.extra;
            }
            None => (*tensor).extra = std::ptr::from_ref(stack).cast_mut().cast(),
        }
    }
}

/// Memory for one tensor's experts in the layout that is chosen, or the best it can have.
fn make(
    tensor: *mut api::ggml_tensor,
    choose: &ChooseLayout,
) -> Result<(String, Stack), LayoutError> {
    // SAFETY: the model's tensor is live, its name ends with NUL.
    let (name, like) = unsafe {
        (CStr::from_ptr((*tensor).name.as_ptr()).to_string_lossy().into_owned(), *tensor)
    };
    let ty = GgmlType::ALL.iter().copied().find(|ty| ty.id() == like.type_);
    let shape = ty.map(|ty| MatrixShape { ty, row: like.ne[0] as u32, rows: like.ne[1] as u32 });
    let wanted = shape.as_ref().map_or(Layout::Plain, |shape| choose(&name, shape));
    let layout = match shape {
        Some(shape) if wanted.bytes(&shape).is_some() => wanted,
        _ => Layout::Plain,
    };
    let stack = Stack::new(layout, &like);
    let refused = || LayoutError::Memory { tensor: name.clone(), layout: layout.name() };
    let stack = stack.ok_or_else(refused)?;
    Ok((name, stack))
}

/// Every (stack, tensor's name, expert) of `work`, by several threads.
fn fill_all(
    stacks: &[Stack],
    work: &[(usize, String, usize)],
    read: &ReadExpert,
    threads: usize,
    on_progress: &mut dyn FnMut(f32) -> bool,
) -> Result<(), LayoutError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = mpsc::channel();
    let run = |done: mpsc::Sender<Result<(), LayoutError>>| {
        let mut bytes = Vec::new();
        while let Some((stack, tensor, expert)) = work.get(next.fetch_add(1, Relaxed)) {
            if stop.load(Relaxed) {
                return;
            }
            let stack = &stacks[*stack];
            bytes.resize(stack.file_bytes(), 0);
            let read = read(tensor, *expert, &mut bytes);
            let failed =
                |source| LayoutError::Read { tensor: tensor.clone(), expert: *expert, source };
            let result = read.map(|()| stack.set(*expert, &bytes)).map_err(failed);
            if done.send(result).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (run, done) = (&run, done.clone());
            scope.spawn(move || run(done));
        }
        drop(done);
        let mut first = Ok(());
        for (count, result) in results.iter().enumerate() {
            let share = (count + 1) as f32 / work.len().max(1) as f32;
            let stopped = if on_progress(share) { Ok(()) } else { Err(LayoutError::Cancelled) };
            let outcome = result.and(stopped);
            if outcome.is_err() {
                stop.store(true, Relaxed);
            }
            first = first.and(outcome);
        }
        first
    })
}

unsafe extern "C" fn alloc_buffer(
    buft: *mut BufferType,
    size: usize,
) -> api::ggml_backend_buffer_t {
    // SAFETY: ggml passes our type; the buffer is new and nobody else sees it.
    unsafe {
        let buffer = reserve::alloc_buffer(buft, size);
        if !buffer.is_null() {
            (*buffer.cast::<Buffer>()).iface.init_tensor = Some(init_tensor);
        }
        buffer
    }
}

unsafe extern "C" fn init_tensor(
    buffer: *mut Buffer,
    tensor: *mut api::ggml_tensor,
) -> api::ggml_status {
    // SAFETY: ggml passes one of our live buffers, whose type's context `new` made.
    unsafe {
        if (*tensor).view_src.is_null() {
            let reserved = &*(*(*buffer).buft).context.cast::<Reserved>();
            reserved.0.lock().expect("no panic holds this lock").push(tensor);
        }
    }
    api::GGML_STATUS_SUCCESS
}
