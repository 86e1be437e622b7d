//! N7: how long the chunks of a prompt are, within the largest the session was made for, and which
//! of their tokens need logits.

use std::ops::Range;

/// Chunk lengths a prompt may be cut into.
const CHUNKS: [u32; 3] = [256, 512, 1024];

/// The chunk length for a prompt: the smallest of 256, 512 and 1024 that holds it
/// whole, and never more than `largest`.
pub fn chunk_for(prompt_tokens: usize, largest: u32) -> u32 {
    let holds = CHUNKS.into_iter().find(|&chunk| chunk as usize >= prompt_tokens);
    holds.unwrap_or(largest).min(largest).max(1)
}

/// Which tokens of a chunk need logits.
#[derive(Clone, Copy)]
pub(crate) enum Logits {
    None,
    Last,
    All,
}

impl Logits {
    /// Their rows, of a chunk of `tokens`.
    pub(crate) fn rows(self, tokens: usize) -> Range<usize> {
        match self {
            Self::None => 0..0,
            Self::Last => tokens.saturating_sub(1)..tokens,
            Self::All => 0..tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_the_prompt_up_to_the_limit() {
        assert_eq!(chunk_for(100, 512), 256);
        assert_eq!(chunk_for(300, 512), 512);
        assert_eq!(chunk_for(5000, 512), 512);
        assert_eq!(chunk_for(5000, 2048), 2048);
        assert_eq!(chunk_for(10, 64), 64);
    }
}
