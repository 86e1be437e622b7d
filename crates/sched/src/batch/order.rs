//! In which order prompts are computed, and how much of each at a time.

use super::Sharing;
use super::planner::Planner;
use super::sequence::Sequence;

/// The oldest prompt gets at least one part in so many of what a step could give it.
const LONG_PROMPT_SHARE: u32 = 4;

impl Planner {
    /// Prompts of `oldest_first`, those of higher priority first, else in that order; but in a cache
    /// for all the shortest of the first priority goes before them when half of `left` is enough for
    /// it: a question is not held up by a book, and the book goes on.
    pub(super) fn prompts_in_order(&self, oldest_first: &[usize], left: u32) -> Vec<usize> {
        let pending = |&at: &usize| self.sequences[at].as_ref().map_or(0, Sequence::pending);
        let is_prompt = |&at: &usize| self.sequences[at].as_ref().is_some_and(Sequence::is_prompt);
        let mut order: Vec<usize> = oldest_first.iter().copied().filter(is_prompt).collect();
        let priority = |at: &usize| self.sequences[*at].as_ref().map(|s| s.client.priority);
        order.sort_by_key(priority);
        let first = order.first().and_then(priority);
        let in_one = !matches!(self.limits.sharing, Sharing::Parts | Sharing::Nothing);
        let of_first = order.iter().copied().enumerate().filter(|(_, at)| priority(at) == first);
        let shortest = of_first.min_by_key(|(_, at)| pending(at));
        if let Some((place, at)) = shortest
            && in_one
            && pending(&at) <= left / 2
        {
            order[..=place].rotate_right(1);
        }
        order
    }

    /// Most tokens a prompt takes of a step with `left` tokens. With own parts that is what
    /// the shortest has left, so that all are computed together, but never so little that a
    /// long one crawls behind short ones.
    pub(super) fn even_length(&self, left: u32) -> u32 {
        if self.limits.sharing != Sharing::Parts {
            return left;
        }
        let prompts = || self.active().filter(|(_, sequence)| sequence.is_prompt());
        let oldest = prompts().min_by_key(|(_, sequence)| sequence.age());
        let shortest = prompts().map(|(_, sequence)| sequence.pending()).min().unwrap_or(left);
        let share = left / (prompts().count().max(1) as u32);
        let wanted = oldest.map_or(left, |(_, sequence)| sequence.pending().min(left));
        shortest.min(share).max(wanted.div_ceil(LONG_PROMPT_SHARE))
    }
}
