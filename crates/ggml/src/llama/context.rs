//! A llama.cpp context: the KV cache, the two thread pools and the executor that
//! runs this context's expert blocks.

use super::affinity::bind_this_thread;
use super::batch::Batch;
use super::log;
use super::model::Model;
use super::shim::{self, Thrown};
use crate::compute::threadpool::{Threadpool, occupy};
use crate::seam::backend::{Binding, with_binding};
use crate::seam::claim::{Claims, with_claims};
use crate::seam::executor::{BlockError, BlockExecutor};
use crate::seam::link::{BackendLink, SeamCounts};
use llama_cpp_sys_2 as sys;
use motley_model::{KvType, Pooling};
use std::ffi::c_void;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// llama.h's `LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY`, a macro: only what of a sequence's memory cannot
/// be cut.
const PARTIAL_ONLY: sys::llama_state_seq_flags = 1;
/// All of it.
const WHOLE: sys::llama_state_seq_flags = 0;

/// Shape of a context.
#[derive(Debug, Clone, Copy)]
pub struct ContextOptions {
    /// KV cache length in tokens, all sequences together.
    pub context_tokens: u32,
    /// What keys and values are kept in.
    pub kv: KvType,
    /// Layers that look back at a window keep no more than it and a batch: sequences can then be cut
    /// near their end only. Otherwise all layers keep every position.
    pub windows: bool,
    /// Most tokens in one decode call; also the micro-batch.
    pub batch_tokens: u32,
    /// Most sequences at once.
    pub sequences: u32,
    /// One cache for all sequences, so that they can share cells; otherwise each has
    /// its own equal part.
    pub unified: bool,
    /// Keep the KV cache in f32 and attention in its plain form: twice the memory,
    /// for comparing with references, whatever `kv` says.
    pub precise_attention: bool,
    /// Make one vector of each sequence in a batch, at [`Context::pooled`]: every row is then an
    /// output.
    pub pooling: Option<Pooling>,
}

/// The two thread pools of a context (A5): switching needs no new KV cache.
#[derive(Debug, Clone)]
pub struct Pools {
    /// For batches in which streams decode.
    pub decode: Arc<Threadpool>,
    /// For batches with rows of a prompt.
    pub prefill: Arc<Threadpool>,
}

/// Which of the two pools computes a batch: whoever makes the batch knows what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolChoice {
    /// The decode pool.
    Decode,
    /// The prefill pool.
    Prefill,
}

impl Pools {
    fn both(&self) -> [&Arc<Threadpool>; 2] {
        [&self.decode, &self.prefill]
    }

    fn get(&self, choice: PoolChoice) -> &Arc<Threadpool> {
        match choice {
            PoolChoice::Decode => &self.decode,
            PoolChoice::Prefill => &self.prefill,
        }
    }
}

impl PoolChoice {
    /// The pool of a batch that only decodes, or of another.
    pub fn of(decodes: bool) -> Self {
        if decodes { Self::Decode } else { Self::Prefill }
    }
}

/// Why a context was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "llama.cpp cannot make a context of {context_tokens} tokens (too little memory?): {reason}"
)]
pub struct ContextError {
    /// Requested length.
    pub context_tokens: u32,
    /// llama.cpp's own words.
    pub reason: String,
}

/// Why a batch was not decoded.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DecodeError {
    /// The KV cache has no room for the batch.
    #[error("the context is full; give a larger --context")]
    NoRoom,
    /// Cancelled through [`Context::cancel_flag`].
    #[error("cancelled")]
    Cancelled,
    /// The executor could not run a block.
    #[error("expert block failed: {0}")]
    Executor(#[from] BlockError),
    /// llama.cpp's own error code.
    #[error("llama.cpp failed to decode (code {0})")]
    Engine(i32),
    /// A file with weights in use was written to or cut: nothing computed with it is an answer,
    /// now or later.
    #[error("{}: changed while in use; restart to load it again", path.display())]
    ModelChanged { path: PathBuf },
    /// llama.cpp threw an exception, now or in a change of the cache before.
    #[error(transparent)]
    Thrown(#[from] Thrown),
}

/// One KV cache over a model, with all sequences in it.
pub struct Context {
    raw: NonNull<sys::llama_context>,
    cancel: Arc<AtomicBool>,
    link: Arc<BackendLink>,
    claims: Claims,
    pools: Pools,
    /// The pool llama.cpp computes on.
    attached: Option<PoolChoice>,
    /// Pools that were in use before: backends hold the last one they computed with.
    former: Vec<Arc<Threadpool>>,
    /// Tokens that must be there before a position to go on from it; `None` keeps every position.
    window: Option<i32>,
    /// A change of the cache threw: what it holds is not known until it is cleared.
    thrown: Option<Thrown>,
    model: Arc<Model>,
}

// SAFETY: a context may move between threads; all use is through `&mut self` or
// reads of data only `&mut self` methods change.
unsafe impl Send for Context {}

impl Context {
    /// Makes a context whose expert blocks run on `executor`, as far as `claims` go (unused when
    /// the seam is absent or the model is dense).
    pub fn new(
        model: Arc<Model>,
        options: &ContextOptions,
        pools: Pools,
        (executor, claims): (Box<dyn BlockExecutor>, Claims),
    ) -> Result<Self, ContextError> {
        let cancel = Arc::new(AtomicBool::new(false));
        let link = Arc::new(BackendLink::default());
        let params = params(options, &pools, &cancel);
        log::take_errors();
        let binding = Binding { executor, link: Arc::clone(&link), nodes: model.nodes() };
        // SAFETY: the model is live; the cancel flag is kept alive by the context.
        let make = || unsafe { shim::init_from_model(model.raw(), &params) };
        let raw = with_claims(&claims, || with_binding(binding, make));
        let failed = |reason| ContextError { context_tokens: options.context_tokens, reason };
        let raw = raw.map_err(|thrown| failed(thrown.to_string()))?;
        let raw = NonNull::new(raw).ok_or_else(|| failed(log::take_errors()))?;
        // SAFETY: the model is live.
        let window = unsafe { sys::llama_model_n_swa(model.raw()) };
        Ok(Self {
            raw,
            cancel,
            link,
            claims,
            pools,
            attached: None,
            former: Vec::new(),
            window: (options.windows && window > 0).then_some(window),
            thrown: None,
            model,
        })
    }

    /// Computes `batch` on the chosen pool; its logits are then at [`Context::logits`].
    pub fn decode(&mut self, batch: &Batch, choice: PoolChoice) -> Result<(), DecodeError> {
        if let Some(thrown) = &self.thrown {
            return Err(thrown.clone().into());
        }
        self.check_files()?;
        self.attach(choice);
        let pool = self.pools.get(choice);
        self.link.pool.set(pool);
        if !pool.cpus().is_empty() {
            bind_this_thread(pool.cpus());
        }
        // Contexts that share a pool take turns.
        let _occupied = occupy(self.pools.both().into_iter().chain(&self.former));
        // SAFETY: the batch's arrays are live; the context is ours alone, and so are its pools.
        let run = || unsafe { shim::decode(self.raw.as_ptr(), batch.raw()) };
        let code = with_claims(&self.claims, run);
        let error = self.link.take_error();
        // Before the outcome: a page that was missing ends in zeros and not in an error.
        self.check_files()?;
        Err(match (code?, error) {
            (0, None) => return Ok(()),
            (_, Some(error)) => DecodeError::Executor(error),
            (1, None) => DecodeError::NoRoom,
            (2, None) => DecodeError::Cancelled,
            (code, None) => DecodeError::Engine(code),
        })
    }

    fn check_files(&self) -> Result<(), DecodeError> {
        let changed = |path: &Path| DecodeError::ModelChanged { path: path.to_owned() };
        self.model.changed().map(changed).map_or(Ok(()), Err)
    }

    /// Computes on other pools from the next batch on; the KV cache stays (A5).
    pub fn set_pools(&mut self, pools: Pools) {
        self.attached = None;
        let before = std::mem::replace(&mut self.pools, pools);
        for pool in [before.decode, before.prefill] {
            if !self.former.iter().any(|kept| Arc::ptr_eq(kept, &pool)) {
                self.former.push(pool);
            }
        }
    }

    /// llama.cpp takes one pool for batches of one token and another for larger ones; both are the
    /// one that was chosen.
    fn attach(&mut self, choice: PoolChoice) {
        if self.attached == Some(choice) {
            return;
        }
        let pool = self.pools.get(choice);
        // SAFETY: the pools are kept alive by the context, and so are the former ones, which
        // ggml's CPU backends pause when they meet the new.
        unsafe {
            let raw = self.raw.as_ptr();
            sys::llama_attach_threadpool(raw, pool.raw(), pool.raw());
            sys::llama_set_n_threads(raw, pool.threads() as i32, pool.threads() as i32);
        }
        self.attached = Some(choice);
    }

    /// Logits of the batch's token at `index` (it asked for them), `[vocab]`.
    pub fn logits(&self, index: usize) -> Option<&[f32]> {
        // SAFETY: llama.cpp checks the index and returns null when there are none;
        // the row holds one float per vocabulary entry until the next decode.
        unsafe {
            let row = sys::llama_get_logits_ith(self.raw.as_ptr(), index as i32);
            (!row.is_null()).then(|| std::slice::from_raw_parts(row, self.model.vocab_size()))
        }
    }

    /// The vector of `sequence`, of its rows in the last batch; scores where it ranks. Only with
    /// [`ContextOptions::pooling`].
    pub fn pooled(&self, sequence: i32) -> Option<&[f32]> {
        // SAFETY: llama.cpp returns null when there is none; it has as many numbers as the model's
        // kind of pooling gives, until the next decode.
        unsafe {
            let row = sys::llama_get_embeddings_seq(self.raw.as_ptr(), sequence);
            let model = self.model.raw();
            let len = match sys::llama_pooling_type(self.raw.as_ptr()) {
                sys::LLAMA_POOLING_TYPE_RANK => sys::llama_model_n_cls_out(model) as usize,
                _ => usize::try_from(sys::llama_model_n_embd_out(model)).unwrap_or(0),
            };
            (!row.is_null()).then(|| std::slice::from_raw_parts(row, len))
        }
    }

    /// Drops `sequence`'s cache from `position` on; `false` when the memory kind
    /// cannot be cut there, and nothing is dropped.
    pub fn truncate(&mut self, sequence: i32, position: i32) -> bool {
        if self.window.is_some_and(|window| !self.is_there(sequence, position, window)) {
            return false;
        }
        // SAFETY: the context and its memory are live.
        let removed = unsafe { shim::memory_seq_rm(self.raw.as_ptr(), sequence, position) };
        self.heed(removed).unwrap_or(false)
    }

    /// The first `tokens` positions of `from` belong to the empty `to` as well. Only
    /// with [`ContextOptions::unified`].
    pub fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32) {
        // SAFETY: the context and its memory are live.
        let copied = unsafe { shim::memory_seq_cp(self.raw.as_ptr(), from, to, 0..tokens) };
        self.heed(copied);
    }

    /// What of `sequence`'s memory cannot be cut, as it is now: recurrent states. `None` when
    /// llama.cpp gives none.
    pub fn save_state(&mut self, sequence: i32) -> Option<Vec<u8>> {
        self.state_of(sequence, PARTIAL_ONLY)
    }

    /// All of `sequence`'s memory at `positions`, and what of it cannot be cut as it is now. `spare`
    /// is an empty sequence, and is again. `None` when llama.cpp gives none. Only with
    /// [`ContextOptions::unified`].
    pub fn save_segment(
        &mut self,
        sequence: i32,
        spare: i32,
        positions: Range<i32>,
    ) -> Option<Vec<u8>> {
        // SAFETY: the context and its memory are live.
        let copied = unsafe { shim::memory_seq_cp(self.raw.as_ptr(), sequence, spare, positions) };
        self.heed(copied)?;
        let state = self.state_of(spare, WHOLE);
        state.filter(|_| self.truncate(spare, 0))
    }

    /// Puts what [`Context::save_segment`] gave at the end of `sequence`, whose next position is the
    /// first of `positions`; `false` when llama.cpp refuses it, and the sequence is as before.
    pub fn load_segment(
        &mut self,
        sequence: i32,
        spare: i32,
        positions: Range<i32>,
        state: &[u8],
    ) -> bool {
        let last = positions.end - 1;
        let read = self.put_state(spare, state, WHOLE) && self.last_position(spare) == last;
        // SAFETY: the context and its memory are live.
        let copied = read
            .then(|| unsafe { shim::memory_seq_cp(self.raw.as_ptr(), spare, sequence, positions) });
        let copied = copied.is_some_and(|copied| self.heed(copied).is_some());
        self.truncate(spare, 0) && copied && self.last_position(sequence) == last
    }

    /// Whether all that the token at `position` looks back at is still kept.
    fn is_there(&self, sequence: i32, position: i32, window: i32) -> bool {
        // SAFETY: the context and its memory are live.
        let first = unsafe {
            sys::llama_memory_seq_pos_min(sys::llama_get_memory(self.raw.as_ptr()), sequence)
        };
        position <= 0 || first <= position.saturating_sub(window - 1).max(0)
    }

    fn last_position(&self, sequence: i32) -> i32 {
        // SAFETY: the context and its memory are live.
        unsafe { sys::llama_memory_seq_pos_max(sys::llama_get_memory(self.raw.as_ptr()), sequence) }
    }

    fn state_of(&mut self, sequence: i32, flags: sys::llama_state_seq_flags) -> Option<Vec<u8>> {
        let raw = self.raw.as_ptr();
        // SAFETY: the context is live and ours alone; the buffer has the size that was asked for.
        unsafe {
            let mut state = vec![0; sys::llama_state_seq_get_size_ext(raw, sequence, flags)];
            let (to, size) = (state.as_mut_ptr(), state.len());
            let written = sys::llama_state_seq_get_data_ext(raw, to, size, sequence, flags);
            (written > 0 && written == size).then_some(state)
        }
    }

    /// Puts back what [`Context::save_state`] gave, of this or another sequence of this context;
    /// `false` when llama.cpp refuses it.
    pub fn restore_state(&mut self, sequence: i32, state: &[u8]) -> bool {
        self.put_state(sequence, state, PARTIAL_ONLY)
    }

    fn put_state(
        &mut self,
        sequence: i32,
        state: &[u8],
        flags: sys::llama_state_seq_flags,
    ) -> bool {
        let raw = self.raw.as_ptr();
        // SAFETY: the context is live and ours alone; llama.cpp reads no further than `state`, and
        // catches its own exceptions here.
        let read = unsafe {
            sys::llama_state_seq_set_data_ext(raw, state.as_ptr(), state.len(), sequence, flags)
        };
        read == state.len()
    }

    /// Empties the cache.
    pub fn clear(&mut self) {
        self.thrown = None;
        // SAFETY: the context and its memory are live.
        let cleared = unsafe { shim::memory_clear(self.raw.as_ptr()) };
        self.heed(cleared);
    }

    /// Later batches are refused when a change of the cache threw.
    fn heed<T>(&mut self, changed: Result<T, Thrown>) -> Option<T> {
        changed.map_err(|thrown| self.thrown = Some(thrown)).ok()
    }

    /// Setting the flag ends a running decode with [`DecodeError::Cancelled`].
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// What went through the seam so far.
    pub fn seam_counts(&self) -> SeamCounts {
        self.link.counts()
    }

    /// The model under this context.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made once, freed once; pools, flag and model outlive this call.
        unsafe { sys::llama_free(self.raw.as_ptr()) }
    }
}

fn params(
    options: &ContextOptions,
    pools: &Pools,
    cancel: &Arc<AtomicBool>,
) -> sys::llama_context_params {
    // SAFETY: the defaults are plain data.
    let mut params = unsafe { sys::llama_context_default_params() };
    params.n_ctx = options.context_tokens;
    params.n_batch = options.batch_tokens;
    params.n_ubatch = options.batch_tokens;
    params.n_seq_max = options.sequences;
    params.kv_unified = options.unified;
    params.swa_full = !options.windows;
    params.n_threads = pools.decode.threads() as i32;
    params.n_threads_batch = pools.prefill.threads() as i32;
    let kv = options.kv.ggml_type() as sys::ggml_type;
    (params.type_k, params.type_v) = (kv, kv);
    if options.precise_attention {
        params.type_k = sys::GGML_TYPE_F32;
        params.type_v = sys::GGML_TYPE_F32;
        params.flash_attn_type = sys::LLAMA_FLASH_ATTN_TYPE_DISABLED;
    }
    if let Some(pooling) = options.pooling {
        params.embeddings = true;
        params.pooling_type = pooling.number() as sys::llama_pooling_type;
    }
    params.abort_callback = Some(is_cancelled);
    params.abort_callback_data = Arc::as_ptr(cancel).cast_mut().cast();
    params
}

unsafe extern "C" fn is_cancelled(flag: *mut c_void) -> bool {
    // SAFETY: the flag is kept alive by the context that runs the graph.
    unsafe { (*flag.cast::<AtomicBool>()).load(Relaxed) }
}
