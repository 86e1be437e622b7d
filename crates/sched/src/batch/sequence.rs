//! One sequence of the context: its tokens and the cells of those computed.

use super::on_disk::OnDisk;
use super::saved::Saved;
use super::{Client, ClientId, RequestId};
use std::time::Duration;

/// What a sequence is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It answers a request; a smaller age came first.
    Active { request: RequestId, age: u64 },
    /// Its answer is done; it may be someone's prefix. When it was last of use.
    Kept { used: u64 },
}

/// A sequence that has tokens.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    pub(super) role: Role,
    /// Who asked.
    pub(super) client: Client,
    /// Computed ones first.
    pub(super) tokens: Vec<i32>,
    /// Cells of the computed ones.
    pub(super) cells: Vec<u32>,
    /// Chunk its prompt came with.
    pub(super) chunk_tokens: u32,
    /// Tokens before the end of each message of its prompt.
    pub(super) boundaries: Vec<u32>,
    /// Those of them at which a state is yet to be saved.
    pub(super) marks: Vec<u32>,
    /// Its saved states.
    pub(super) saved: Vec<Saved>,
    /// Where it stands with the disk.
    pub(super) disk: OnDisk,
    /// Whether it looked for a prefix already.
    pub(super) begun: bool,
    /// What each token took of the last step it was in.
    pub(super) token_time: Option<Duration>,
}

impl Sequence {
    /// Tokens known and not computed.
    pub(super) fn pending(&self) -> u32 {
        (self.tokens.len() - self.cells.len()) as u32
    }

    /// Whether it only has the token it sampled to compute.
    pub(super) fn decodes(&self) -> bool {
        self.pending() == 1 && !self.cells.is_empty() && !self.disk.is_loading()
    }

    /// Whether it has tokens of its prompt to compute.
    pub(super) fn is_prompt(&self) -> bool {
        self.age().is_some() && self.pending() > 0 && !self.decodes()
    }

    /// Computed tokens it shares with the beginning of `tokens`.
    pub(super) fn computed_prefix(&self, tokens: &[i32]) -> usize {
        common(&self.tokens[..self.cells.len() - self.disk.unsure_tokens()], tokens)
    }

    /// The last state within its first `tokens` tokens.
    pub(super) fn state_within(&self, tokens: usize) -> Option<Saved> {
        let within = |saved: &&Saved| saved.at as usize <= tokens;
        self.saved.iter().filter(within).max_by_key(|saved| saved.at).copied()
    }

    /// What a prompt can have of it, kept as it is: all, if the prompt begins with all; else what
    /// is before a state.
    pub(super) fn reusable(&self, wanted: &[i32]) -> usize {
        let known = self.computed_prefix(wanted);
        match known == self.cells.len() {
            true => known,
            false => self.state_within(known).map_or(0, |saved| saved.at as usize),
        }
    }

    /// Tokens until a state is to be saved.
    pub(super) fn until_mark(&self) -> u32 {
        let next = self.marks.iter().find(|&&mark| mark as usize > self.cells.len());
        next.map_or(u32::MAX, |mark| mark - self.cells.len() as u32)
    }

    /// Who waits for its answer.
    pub(super) fn asking(&self) -> Option<ClientId> {
        self.age().map(|_| self.client.id)
    }

    pub(super) fn age(&self) -> Option<u64> {
        match self.role {
            Role::Active { age, .. } => Some(age),
            Role::Kept { .. } => None,
        }
    }
}

/// Tokens `a` and `b` begin with alike.
pub(super) fn common(a: &[i32], b: &[i32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
