//! What a user asked for: every flag that can change a run, as typed. `None` leaves the choice to
//! [`decide`](super::decide). Nothing is resolved here.

use crate::budget::saved_states;
use motley_model::KvType;
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{ByMemory, SkipCold};
use serde::{Deserialize, Serialize};

/// Least length of a KV cache when nobody says, and the length where text is scored.
pub const DEFAULT_CONTEXT_TOKENS: u32 = 4096;
/// Prompt for which chunks are compared and speeds are predicted, when nobody says.
pub const DEFAULT_PROMPT_TOKENS: u32 = 1024;

/// Length of the answer for which chunks and layouts are compared.
pub const ANSWER_TOKENS: f64 = 256.0;
/// Chunks that are compared (N7), the default one first; the last two are for little memory.
pub const CHUNKS: [u32; 5] = [512, 256, 1024, 128, 64];
/// Further ones for prompts as long: what is on disk is read once for each chunk.
const LONG_CHUNKS: [u32; 4] = [2048, 4096, 8192, 16384];

/// The wishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub goal: Goal,
    pub loading: Option<Loading>,
    /// Ceiling for everything in RAM.
    pub memory_bytes: Option<u64>,
    pub devices: DevicesAsked,
    /// Threads for both phases.
    pub threads: Option<u32>,
    /// Cells of the KV cache, all sequences together; `None` takes as many as cost nothing else.
    pub context_tokens: Option<u32>,
    /// What the cache is kept in; `None` leaves f16 only where something smaller clearly gains.
    pub kv: Option<KvType>,
    /// Whether a cache keeps every position of every layer: one that somebody else makes may.
    pub every_position: bool,
    pub chunk_tokens: Option<u32>,
    /// Which logits are wanted, for which memory is set aside.
    pub outputs: Outputs,
    pub policy: Option<ByMemory<PolicyChoice>>,
    pub prefetch: Option<ByMemory<PrefetchChoice>>,
    /// Weak experts that would have to be read are left out.
    pub skip_cold: Option<SkipCold>,
    /// The same bits wherever experts are.
    pub exact: bool,
    /// Length of the prompt that speeds are predicted for.
    pub prompt_tokens: u32,
}

impl Asked {
    /// Chunks to compare, the default one first, the smallest last. Longer than usual only as far as
    /// the prompt fills them by more than half.
    pub(super) fn chunks(&self) -> Vec<u32> {
        let long = LONG_CHUNKS.into_iter().filter(|chunk| self.prompt_tokens > chunk / 2);
        [CHUNKS[0]].into_iter().chain(long).chain(CHUNKS[1..].iter().copied()).collect()
    }

    /// Whether layers with a window keep no more: where a conversation only goes on from its end,
    /// and the order of what is added up may depend on the chunk.
    pub(super) fn windows(&self) -> bool {
        let goes_on = matches!(self.outputs, Outputs::One | Outputs::Ahead(_));
        goes_on && !self.exact && !self.every_position
    }

    /// Cells with which everything else is compared: as asked, else enough for the prompt and an
    /// answer.
    pub(super) fn least_context(&self) -> u32 {
        let both = self.prompt_tokens.saturating_add(ANSWER_TOKENS as u32);
        self.context_tokens.unwrap_or(both.max(DEFAULT_CONTEXT_TOKENS))
    }
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            goal: Goal::Speed,
            loading: None,
            memory_bytes: None,
            devices: DevicesAsked::Auto,
            threads: None,
            context_tokens: None,
            kv: None,
            every_position: false,
            chunk_tokens: None,
            outputs: Outputs::One,
            policy: None,
            prefetch: None,
            skip_cold: None,
            exact: false,
            prompt_tokens: DEFAULT_PROMPT_TOKENS,
        }
    }
}

/// What matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Tokens per second.
    #[default]
    Speed,
    /// Joules per token, at most 8 % slower (A1).
    Energy,
    /// Bytes, at most 10 % slower.
    Memory,
}

/// How weights come into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loading {
    /// llama.cpp maps the file; where it rearranges weights, it copies them.
    #[default]
    Mapped,
    /// Dense weights are read once; an expert's bytes are read when a token needs them, and stay
    /// while there is room.
    OnDemand,
}

/// Devices that share the experts with the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DevicesAsked {
    /// Every GPU that helps.
    #[default]
    Auto,
    /// None.
    Cpu,
    /// These.
    Named(Vec<NamedDevice>),
}

/// One device by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDevice {
    pub name: String,
    /// Most of its memory that is used.
    pub most_bytes: Option<u64>,
}

/// Tokens of a pass whose logits are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// One: a single answer at a time.
    One,
    /// One, and those of so many tokens guessed ahead.
    Ahead(u16),
    /// One for each of so many streams of a server.
    Streams(u16),
    /// Every token's: text is scored.
    All,
    /// Every token's, of texts that a server makes vectors of, at most so many at once.
    Texts(u16),
}

impl Outputs {
    /// At most so many in a chunk.
    pub fn tokens(self, chunk_tokens: u32) -> u32 {
        match self {
            Self::One => 1,
            Self::Ahead(guesses) => (1 + u32::from(guesses)).min(chunk_tokens),
            Self::Streams(streams) => u32::from(streams),
            Self::All | Self::Texts(_) => chunk_tokens,
        }
    }

    /// Recurrent states, with those that a server saves.
    pub fn states(self) -> u32 {
        match self {
            Self::One | Self::Ahead(_) | Self::All => 1,
            Self::Texts(texts) => texts.into(),
            Self::Streams(streams) => u32::from(streams) + u32::from(saved_states(streams)),
        }
    }
}
