//! Tokens to be decoded together: a `llama_batch` that owns its arrays.

use llama_cpp_sys_2 as sys;

/// One token's place in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchToken {
    /// Token id.
    pub token: i32,
    /// Position in its sequence.
    pub position: i32,
    /// Sequence it belongs to.
    pub sequence: i32,
    /// Whether its logits are wanted.
    pub logits: bool,
}

/// A reusable batch of at most `capacity` tokens.
pub struct Batch {
    raw: sys::llama_batch,
    capacity: usize,
}

// SAFETY: the arrays are owned and only reached through `&mut self`.
unsafe impl Send for Batch {}

impl Batch {
    /// An empty batch for up to `capacity` tokens.
    pub fn with_capacity(capacity: usize) -> Self {
        // SAFETY: allocates; one sequence id per token.
        let raw = unsafe { sys::llama_batch_init(capacity as i32, 0, 1) };
        Self { raw, capacity }
    }

    /// Forgets the tokens.
    pub fn clear(&mut self) {
        self.raw.n_tokens = 0;
    }

    /// Adds a token; panics when the batch is full.
    pub fn push(&mut self, token: BatchToken) {
        let index = self.len();
        assert!(index < self.capacity, "a batch holds {} tokens", self.capacity);
        // SAFETY: every array has `capacity` entries, and each `seq_id` entry points
        // at room for one id.
        unsafe {
            *self.raw.token.add(index) = token.token;
            *self.raw.pos.add(index) = token.position;
            *self.raw.n_seq_id.add(index) = 1;
            **self.raw.seq_id.add(index) = token.sequence;
            *self.raw.logits.add(index) = i8::from(token.logits);
        }
        self.raw.n_tokens += 1;
    }

    /// Tokens in the batch.
    pub fn len(&self) -> usize {
        self.raw.n_tokens as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.n_tokens == 0
    }

    pub(crate) fn raw(&self) -> &sys::llama_batch {
        &self.raw
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: allocated by `llama_batch_init`, freed once.
        unsafe { sys::llama_batch_free(self.raw) }
    }
}
