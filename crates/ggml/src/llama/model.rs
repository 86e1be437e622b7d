//! A model loaded by llama.cpp: its weights, and where the routed experts' bytes live. What its
//! vocabulary says is in `vocabulary` and `tokenize`.

use super::facts::VocabularyFacts;
use super::log;
use super::pages::Anonymous;
use super::shim::{self, Thrown};
use super::vfile::{CStream, VirtualFile};
use super::weights::{LaidOutSource, LaidOutWeights, Memories, Weights};
use crate::gpu::device::GpuDevice;
use crate::layout::Layout;
use crate::layout::memory::{LaidOutMemory, LayoutError};
use crate::layout::nodes::Nodes;
use crate::seam::mapped::MappedMemory;
use crate::seam::runtime::Runtime;
use crate::seam::zeros::ZeroMemory;
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// How llama.cpp holds the weights, and on which devices.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// Let llama.cpp rearrange weights for the CPU's matrix instructions: faster,
    /// held in anonymous memory, last bits differ from the plain kernels.
    pub repack: bool,
    /// GPUs llama.cpp computes on. With none it keeps to the CPU; left to itself it would send
    /// the dense work of prompts to any GPU it finds, whatever `gpu_layers` says.
    pub gpus: Vec<LayerGpu>,
    /// Layers whose dense part goes there.
    pub gpu_layers: u32,
    /// Their routed experts go there as well, for good: llama.cpp computes them and no
    /// block comes to Motley. Otherwise experts stay in this process's memory, in their
    /// plain form.
    pub gpu_experts: bool,
}

/// A GPU of llama.cpp's, and its part of the layers.
#[derive(Debug, Clone)]
pub struct LayerGpu {
    /// Where they are computed.
    pub device: GpuDevice,
    /// Its share of the layers, in proportion to the others'.
    pub part: f32,
}

/// Why a model did not load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The path has a NUL byte.
    #[error("{0:?} is not a path the engine can open")]
    Path(PathBuf),
    /// The virtual file could not be opened as a C stream.
    #[error("cannot present the model as a stream: {0}")]
    Stream(#[source] std::io::Error),
    /// Experts can only be reserved when Motley's device is registered.
    #[error("experts can only be left on disk with the seam registered")]
    NoSeam,
    /// The files could not be watched while they are mapped.
    #[error("the system refuses a handler for faults in mapped files")]
    Unwatched,
    /// llama.cpp refused; its own words.
    #[error("llama.cpp cannot load the model: {0}")]
    Engine(String),
    /// llama.cpp threw an exception.
    #[error(transparent)]
    Thrown(#[from] Thrown),
    /// The experts could not be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The progress callback asked to stop.
    #[error("loading was cancelled")]
    Cancelled,
}

/// As llama.cpp wants them: one for every device there may be.
fn parts(gpus: &[LayerGpu]) -> Vec<f32> {
    // SAFETY: a constant of the build.
    let most = unsafe { sys::llama_max_devices() }.max(gpus.len());
    let mut parts: Vec<_> = gpus.iter().map(|gpu| gpu.part).collect();
    parts.resize(most, 0.0);
    parts
}

/// Called with the loaded fraction, 0 to 1; returning `false` stops the load.
pub type LoadProgress<'a> = &'a mut dyn FnMut(f32) -> bool;

/// A loaded model. Shared by its contexts through an `Arc`.
#[derive(Debug)]
pub struct Model {
    raw: NonNull<sys::llama_model>,
    /// Where its weights lie, when they stay in their files.
    mapped: Option<MappedMemory>,
    /// Where its experts lie, when they were laid out.
    laid_out: Option<LaidOutMemory>,
    /// What its vocabulary is asked often.
    pub(super) facts: OnceLock<VocabularyFacts>,
}

// SAFETY: llama.cpp models are immutable after loading.
unsafe impl Send for Model {}
// SAFETY: as above; several contexts may read one model at once.
unsafe impl Sync for Model {}

impl Model {
    /// Loads `weights`. The runtime decides whether expert blocks come to Motley.
    pub fn load(
        _: Runtime,
        weights: Weights,
        options: &ModelOptions,
        progress: LoadProgress<'_>,
    ) -> Result<Self, LoadError> {
        // llama.cpp's part of the progress, and the experts' after it.
        let (weights, experts) = weights.without_experts();
        let share = experts.as_ref().map_or(0.0, |experts| experts.share);
        let mut dense = |done: f32| progress(done * (1.0 - share));
        // The bare engine stays as it is.
        let ours = !matches!(weights, Weights::Bare(_));
        let before = ours.then(Anonymous::now);
        let mut state = ProgressState { progress: &mut dense, cancelled: false, before };
        // SAFETY: the defaults are plain data; `state` outlives the load calls below.
        let mut params = unsafe { sys::llama_model_default_params() };
        params.n_gpu_layers = i32::try_from(options.gpu_layers).unwrap_or(i32::MAX);
        params.use_extra_bufts = options.repack;
        params.progress_callback = Some(on_progress);
        params.progress_callback_user_data = (&raw mut state).cast();
        let mut gpus: Vec<_> = options.gpus.iter().map(|gpu| gpu.device.raw()).collect();
        gpus.push(std::ptr::null_mut());
        params.devices = gpus.as_mut_ptr();
        let parts = parts(&options.gpus);
        params.tensor_split = parts.as_ptr();
        let mapped = weights.mapped().ok_or(LoadError::Unwatched)?;
        let mut laid_out =
            experts.as_ref().map(|experts| LaidOutMemory::new(experts.nodes.clone()));
        let zeros = weights.zeros();
        let experts_in_memory = options.gpu_layers > 0 && !options.gpu_experts;
        let memories = Memories {
            mapped: mapped.as_ref(),
            laid_out: laid_out.as_ref(),
            zeros: zeros.as_ref(),
        };
        let overrides = weights.overrides(memories, experts_in_memory);
        let overrides = overrides.ok_or(LoadError::NoSeam)?;
        params.tensor_buft_overrides = overrides.as_ptr();
        let raw = load_raw(weights, params)?;
        mapped.iter().for_each(MappedMemory::loaded);
        zeros.iter().for_each(ZeroMemory::loaded);
        let raw = match NonNull::new(raw) {
            Some(raw) => raw,
            None if state.cancelled => return Err(LoadError::Cancelled),
            None => return Err(LoadError::Engine(log::take_errors())),
        };
        let mut rest = |done: f32| progress(1.0 - share + done * share);
        let filled = laid_out.as_mut().zip(experts).map_or(Ok(()), |(memory, experts)| {
            let LaidOutSource { choose, read, threads, .. } = experts;
            memory.fill(&choose, &read, threads, &mut rest)
        });
        // Freed from here on, whatever happens.
        let model = Self { raw, mapped, laid_out, facts: OnceLock::new() };
        match filled {
            Ok(()) => Ok(model),
            Err(LayoutError::Cancelled) => Err(LoadError::Cancelled),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether experts of a layer are tensors of their own, which llama.cpp itself cannot compute.
    pub fn is_apart(&self, layer: u32) -> bool {
        self.laid_out.as_ref().is_some_and(|memory| memory.is_apart(layer))
    }

    /// Layouts of the routed experts' tensors, with the number of tensors; empty when llama.cpp
    /// holds them.
    pub fn layouts(&self) -> Vec<(Layout, usize)> {
        self.laid_out.as_ref().map_or_else(Vec::new, LaidOutMemory::layouts)
    }

    /// The memory nodes its experts are divided among, if they are.
    pub(super) fn nodes(&self) -> Option<Arc<Nodes>> {
        self.laid_out.as_ref().and_then(LaidOutMemory::nodes)
    }

    /// The file that was written to or cut while weights are computed where they lie in it: what
    /// has been computed since may be wrong.
    pub(crate) fn changed(&self) -> Option<&Path> {
        self.mapped.as_ref().and_then(MappedMemory::changed)
    }

    /// Whether the memory of a sequence can be cut and copied at any position; not so
    /// with recurrent state.
    pub fn keeps_every_position(&self) -> bool {
        // SAFETY: the model is live.
        unsafe {
            !sys::llama_model_is_recurrent(self.raw()) && !sys::llama_model_is_hybrid(self.raw())
        }
    }

    /// The model's chat template (Jinja), if it carries one.
    pub fn chat_template(&self) -> Option<String> {
        // SAFETY: the string, when there is one, lives as long as the model.
        unsafe {
            let text = sys::llama_model_chat_template(self.raw(), std::ptr::null());
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    pub(crate) fn raw(&self) -> *mut sys::llama_model {
        self.raw.as_ptr()
    }

    pub(crate) fn vocab(&self) -> *const sys::llama_vocab {
        // SAFETY: the model is live; so is its vocabulary.
        unsafe { sys::llama_model_get_vocab(self.raw()) }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: loaded once, freed once, before the memory its weights are in; contexts hold the
        // model alive.
        unsafe { sys::llama_model_free(self.raw()) }
    }
}

fn load_raw(
    weights: Weights,
    params: sys::llama_model_params,
) -> Result<*mut sys::llama_model, LoadError> {
    log::take_errors();
    match weights {
        Weights::Bare(path) => {
            let path = c_path(&path)?;
            // SAFETY: the path and everything `params` points at outlive the call.
            Ok(unsafe { shim::model_load_from_file(&path, &params) }?)
        }
        Weights::Mapped(weights) => load_stream(weights.into_file(), params),
        Weights::LaidOut(LaidOutWeights { file, .. })
        | Weights::Read(file)
        | Weights::Reserved(file)
        | Weights::Zeros(file)
        | Weights::Experts(file) => load_stream(file, params),
    }
}

fn load_stream(
    file: VirtualFile,
    mut params: sys::llama_model_params,
) -> Result<*mut sys::llama_model, LoadError> {
    // Neither way of mapping: a stream has no file beneath it that llama.cpp could map.
    params.load_mode = sys::LLAMA_LOAD_MODE_NONE;
    params.lazy_mode = sys::LLAMA_LAZY_MODE_OFF;
    let stream = CStream::open(file).map_err(LoadError::Stream)?;
    // SAFETY: the stream is open for the whole call and not used afterwards.
    Ok(unsafe { shim::model_load_from_file_ptr(stream.raw(), &params) }?)
}

fn c_path(path: &Path) -> Result<CString, LoadError> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| LoadError::Path(path.into()))
}

struct ProgressState<'a> {
    progress: LoadProgress<'a>,
    cancelled: bool,
    /// Memory before anything was allocated; taken when the first tensor is about to be read.
    before: Option<Anonymous>,
}

unsafe extern "C" fn on_progress(fraction: f32, user: *mut c_void) -> bool {
    // SAFETY: `user` is the state on the loading thread's stack, and llama.cpp
    // calls back on that thread.
    let state = unsafe { &mut *user.cast::<ProgressState<'_>>() };
    if let Some(before) = state.before.take() {
        before.prefer_large_pages_since();
    }
    let go_on = (state.progress)(fraction);
    state.cancelled |= !go_on;
    go_on
}
