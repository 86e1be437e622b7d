//! Who of those that wait gets a sequence, and which.

use super::on_disk::OnDisk;
use super::planner::{PREFIX_TOKENS_MIN, Planner};
use super::sequence::{Role, Sequence};
use super::{Change, Client, ClientId, Sharing};

/// With fewer sequences none is left to clients that may come: it would be too many of them.
const SEQUENCES_TO_LEAVE_ONE: usize = 4;

impl Planner {
    /// Gives sequences to those who wait as long as their prompts fit beside those of the
    /// others, in order, but for short ones that pass a long one now and then.
    pub(super) fn admit(&mut self) {
        while !self.waiting.is_empty() {
            let alone = self.active().next().is_none();
            let room = self.limits.cells.saturating_sub(self.cells_promised());
            let room = if alone { u32::MAX } else { room };
            let order = |client: Client| self.may_take(client).then(|| self.held_by(client.id));
            let Some(next) = self.waiting.next(room, order) else { return };
            let place = match self.limits.sharing {
                Sharing::Parts => self.own_place(next),
                Sharing::States { .. } => self.place_by_state(next),
                _ => self.empty_sequence(),
            };
            let Some(at) = place else { return };
            let Some(waiting) = self.waiting.take(next) else { return };
            self.clock += 1;
            self.shares.admitted(waiting.client, self.clock);
            let age = waiting.age.unwrap_or(self.clock);
            let (cells, saved) = match self.limits.sharing {
                Sharing::States { .. } => self.take_over(at, &waiting.tokens),
                _ => (self.own_prefix(at, &waiting.tokens), Vec::new()),
            };
            let begun = !cells.is_empty();
            self.sequences[at] = Some(Sequence {
                role: Role::Active { request: waiting.request, age },
                client: waiting.client,
                begun,
                disk: OnDisk::of_prompt(waiting.prompt_tokens),
                tokens: waiting.tokens,
                cells,
                chunk_tokens: waiting.chunk_tokens.max(1),
                boundaries: waiting.boundaries,
                marks: Vec::new(),
                saved,
                token_time: None,
            });
            if begun && let Sharing::States { .. } = self.limits.sharing {
                self.set_marks(at);
            }
        }
    }

    /// With own parts: the sequence that has computed most of the next prompt; else the
    /// first that is free, beside those that run.
    fn own_place(&self, next: usize) -> Option<usize> {
        let tokens = self.waiting.tokens(next)?;
        let free = || {
            let active = |s: &Sequence| s.age().is_some();
            let all = self.sequences.iter().enumerate();
            all.filter(move |(_, sequence)| !sequence.as_ref().is_some_and(active))
        };
        let known = free().filter_map(|(at, kept)| {
            let known = kept.as_ref()?.computed_prefix(&tokens[..tokens.len() - 1]);
            (known >= PREFIX_TOKENS_MIN).then_some((known, std::cmp::Reverse(at)))
        });
        let alone = self.active().next().is_none();
        let idle_longest = |&(_, sequence): &(usize, &Option<Sequence>)| match sequence {
            Some(Sequence { role: Role::Kept { used }, .. }) if alone => *used,
            _ => 0,
        };
        known
            .max()
            .map(|(_, std::cmp::Reverse(at))| at)
            .or_else(|| free().min_by_key(idle_longest).map(|(at, _)| at))
    }

    /// Cells of what the sequence at `at` has computed of `tokens`; the rest is given back.
    fn own_prefix(&mut self, at: usize, tokens: &[i32]) -> Vec<u32> {
        let Some(kept) = &self.sequences[at] else { return Vec::new() };
        let known = kept.computed_prefix(&tokens[..tokens.len() - 1]);
        if known < PREFIX_TOKENS_MIN {
            self.forget(at);
            return Vec::new();
        }
        let Some(mut kept) = self.sequences[at].take() else { return Vec::new() };
        self.wake(&kept);
        kept.cells.drain(known..).for_each(|cell| self.cells.give(cell));
        self.changes.push(Change::Cut { sequence: at as u16, tokens: known as u32 });
        self.figures.reused_tokens += known as u64;
        kept.cells
    }

    /// Cells that active sequences hold or are sure to need.
    fn cells_promised(&self) -> u32 {
        let mut held = vec![false; self.limits.cells as usize];
        let mut promised = 0;
        for (_, sequence) in self.active() {
            promised += sequence.pending() + 1;
            for &cell in &sequence.cells {
                promised += u32::from(!std::mem::replace(&mut held[cell as usize], true));
            }
        }
        promised
    }

    /// An empty sequence, if need be the one kept longest.
    fn empty_sequence(&mut self) -> Option<usize> {
        let empty = |sequences: &[Option<Sequence>]| sequences.iter().position(Option::is_none);
        empty(&self.sequences).or_else(|| {
            self.forget_oldest_kept();
            empty(&self.sequences)
        })
    }

    /// Whether a client may have one more, within what it is given: the last is left to clients that
    /// have none, where there are others. So nobody waits for the end of another's long answer to
    /// begin.
    fn may_take(&self, client: Client) -> bool {
        let held = self.held_by(client.id);
        let free = self.sequences.len() - self.active().count();
        let all_may = self.sequences.len() < SEQUENCES_TO_LEAVE_ONE || free != 1;
        held < usize::from(client.streams)
            && (all_may || held == 0 || !self.shares.has_others(client.id))
    }

    /// Sequences a client has.
    fn held_by(&self, client: ClientId) -> usize {
        self.active().filter(|(_, sequence)| sequence.client.id == client).count()
    }
}
