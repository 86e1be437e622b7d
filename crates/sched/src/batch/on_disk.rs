//! Where a sequence stands with the disk: what it waits for, and what of it is written.

use super::segments::{Segment, SegmentKey};
use std::collections::VecDeque;

/// Where a sequence stands with the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct OnDisk {
    /// Segments still to be read, in order.
    pub(super) to_load: VecDeque<Segment>,
    /// The one asked for with the last step.
    pub(super) loading: Option<Segment>,
    /// Tokens of its prompt.
    pub(super) prompt_tokens: u32,
    pub(super) stored: Stored,
}

/// How much of a sequence is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stored {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// So many tokens, up to the end of this segment.
    UpTo(u32, SegmentKey),
    /// There was no room, or it could not be: not tried again, or prompts that do not fit beside each
    /// other would be written for ever.
    GivenUp,
}

impl OnDisk {
    /// Nothing is known yet of a prompt of so many tokens.
    pub(super) fn of_prompt(prompt_tokens: u32) -> Self {
        Self { prompt_tokens, ..Self::default() }
    }

    /// Whether cells are still to come from disk.
    pub(super) fn is_loading(&self) -> bool {
        self.loading.is_some() || !self.to_load.is_empty()
    }

    /// Tokens whose cells are only there if they can be read.
    pub(super) fn unsure_tokens(&self) -> usize {
        self.loading.map_or(0, |segment| segment.tokens as usize)
    }
}
