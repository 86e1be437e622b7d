//! The planner: requests in, one step at a time out.

use super::cells::Cells;
use super::saved::States;
use super::segments::Segments;
use super::sequence::{Role, Sequence, common};
use super::shares::Shares;
use super::turns::Turns;
use super::waiting::{Queue, Waiting};
use super::{BatchLimits, Change, ClientId, Prompt, Refused, RequestId, Sharing, Step, StepPart};
use std::time::Duration;

/// Shorter prefixes are computed again sooner than copied or waited for.
pub(super) const PREFIX_TOKENS_MIN: usize = 16;

/// Prompt tokens that those who decode hardly notice.
const SHORT_PROMPT_TOKENS: u32 = 16;

/// Plans the steps of one context. Keeps the tokens of every sequence.
#[derive(Debug, Clone)]
pub struct Planner {
    pub(super) limits: BatchLimits,
    pub(super) cells: Cells,
    pub(super) sequences: Vec<Option<Sequence>>,
    pub(super) waiting: Queue,
    pub(super) turns: Turns,
    pub(super) shares: Shares,
    pub(super) states: States,
    /// What is on disk, where anything is.
    pub(super) segments: Option<Segments>,
    /// What a token of a prompt took lately.
    pub(super) token_time: Option<Duration>,
    /// Parts of the last step, and whose they were.
    pub(super) planned: Vec<(ClientId, StepPart)>,
    pub(super) changes: Vec<Change>,
    /// Counts admissions and uses; stands in for time.
    pub(super) clock: u64,
    pub(super) figures: Figures,
}

/// Where things stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Requests waiting for a sequence.
    pub waiting: usize,
    /// Requests that have one.
    pub active: usize,
    /// Sequences kept as prefixes.
    pub kept: usize,
    /// Cells taken, shared ones once.
    pub cells_used: u32,
    /// Of them those that requests with a sequence need; prefixes give the others up.
    pub cells_active: u32,
    pub cells: u32,
    /// Prompt tokens that were computed for another request already.
    pub reused_tokens: u64,
    /// Of them those that were read from disk.
    pub loaded_tokens: u64,
    /// Requests sent back to wait because cells ran out.
    pub sent_back: u64,
}

impl Planner {
    /// A planner for an empty context. `step_tokens` is raised to the number of
    /// sequences when it is smaller: each may decode in every step.
    pub fn new(limits: BatchLimits) -> Self {
        let step_tokens = limits.step_tokens.max(u32::from(limits.sequences));
        let prefill_beside_decode = limits.prefill_beside_decode.max(1);
        Self {
            limits: BatchLimits { step_tokens, prefill_beside_decode, ..limits },
            cells: Cells::new(limits.cells),
            sequences: vec![None; usize::from(limits.sequences)],
            waiting: Queue::default(),
            turns: Turns::default(),
            shares: Shares::default(),
            states: States::new(limits.sharing),
            segments: None,
            token_time: None,
            planned: Vec::new(),
            changes: Vec::new(),
            clock: 0,
            figures: Figures::default(),
        }
    }

    /// The longest a sequence may get: prompt and answer.
    pub fn longest(&self) -> u32 {
        let cells = match self.limits.sharing {
            Sharing::Parts | Sharing::Nothing => {
                self.limits.cells / u32::from(self.limits.sequences.max(1))
            }
            Sharing::Prefixes | Sharing::Cells | Sharing::States { .. } => self.limits.cells,
        };
        cells.min(self.limits.longest_tokens)
    }

    /// Takes a request in, at the end of the queue.
    pub fn submit(&mut self, request: RequestId, prompt: Prompt) -> Result<(), Refused> {
        let Prompt { client, tokens, chunk_tokens, boundaries } = prompt;
        if tokens.is_empty() {
            return Err(Refused::Empty);
        }
        if tokens.len() as u64 > u64::from(self.longest()) {
            return Err(Refused::TooLong { tokens: tokens.len(), longest: self.longest() });
        }
        if self.waiting.len() >= self.limits.waiting {
            return Err(Refused::QueueFull { waiting: self.waiting.len() });
        }
        self.waiting.join(Waiting {
            request,
            client,
            prompt_tokens: tokens.len() as u32,
            tokens,
            chunk_tokens,
            boundaries,
            age: None,
        });
        Ok(())
    }

    /// The next step; empty when there is nothing to do. It is taken as carried out:
    /// a driver whose step fails finishes the requests in it with `keep` false.
    pub fn plan(&mut self) -> Step {
        self.save_due();
        self.store_due();
        self.admit();
        self.load_due();
        let sides = self.sides();
        self.shares.enter(self.sequences.iter().flatten().filter_map(Sequence::asking));
        let mut parts = self.plan_parts(false);
        if parts.is_empty() {
            // Who is behind waits for a prefix of one that sits out.
            parts = self.plan_parts(true);
        }
        self.turns.planned(&parts, SHORT_PROMPT_TOKENS, sides);
        self.note_planned(&parts);
        if self.limits.sharing == Sharing::Parts {
            parts.sort_unstable_by_key(|part| part.sequence);
        }
        Step { changes: std::mem::take(&mut self.changes), parts }
    }

    /// The token sampled for a request whose part had `samples`; `false` when the
    /// sequence cannot get longer and must be finished.
    pub fn on_token(&mut self, request: RequestId, token: i32) -> bool {
        let longest = self.longest() as usize;
        let Some(at) = self.find(request) else { return false };
        let Some(sequence) = &mut self.sequences[at] else { return false };
        let room = sequence.tokens.len() < longest;
        if room {
            sequence.tokens.push(token);
        }
        room
    }

    /// The request is answered or given up. With `keep` its computed tokens stay as a
    /// prefix for others while there is room. `false` when there is no such request.
    pub fn finish(&mut self, request: RequestId, keep: bool) -> bool {
        if self.waiting.leave(request) {
            return true;
        }
        let Some(at) = self.find(request) else { return false };
        self.clock += 1;
        let used = self.clock;
        let keeps = keep && !matches!(self.limits.sharing, Sharing::Cells | Sharing::Nothing);
        match &mut self.sequences[at] {
            // What is still to come from disk comes for nobody.
            Some(sequence)
                if keeps
                    && sequence.cells.len() >= PREFIX_TOKENS_MIN
                    && !sequence.disk.is_loading() =>
            {
                sequence.tokens.truncate(sequence.cells.len());
                sequence.role = Role::Kept { used };
                sequence.cells.iter().for_each(|&cell| self.cells.rest(cell));
                sequence.marks.clear();
            }
            _ => self.forget(at),
        }
        true
    }

    /// Tokens of a sequence, computed ones first.
    pub fn tokens(&self, sequence: u16) -> &[i32] {
        let sequence = self.sequences.get(usize::from(sequence)).and_then(Option::as_ref);
        sequence.map_or(&[], |sequence| &sequence.tokens)
    }

    /// Where things stand.
    pub fn figures(&self) -> Figures {
        let active = self.active().count();
        Figures {
            waiting: self.waiting.len(),
            active,
            kept: self.sequences.iter().flatten().count() - active,
            cells_used: self.cells.total() - self.cells.free(),
            cells_active: self.cells.active(),
            cells: self.cells.total(),
            ..self.figures
        }
    }

    /// Sequences that decode, and those whose prompts are computed.
    fn sides(&self) -> (u32, u32) {
        let decodes = |&(_, sequence): &(usize, &Sequence)| sequence.decodes();
        let prompt = |&(_, sequence): &(usize, &Sequence)| sequence.is_prompt();
        let (decode, prompts) = (self.active().filter(decodes), self.active().filter(prompt));
        (decode.count() as u32, prompts.count() as u32)
    }

    /// What is computed of all clients, or of those that do not sit out.
    fn plan_parts(&mut self, of_all: bool) -> Vec<StepPart> {
        let order = self.oldest_first();
        let client = |at: usize| self.sequences[at].as_ref().map(|sequence| sequence.client.id);
        let takes_part = |&at: &usize| client(at).is_some_and(|c| self.shares.takes_part(c));
        let order: Vec<usize> = order.into_iter().filter(|at| of_all || takes_part(at)).collect();
        let mut parts = Vec::new();
        self.plan_decodes(&order, &mut parts);
        self.plan_prompts(&order, &mut parts);
        parts
    }

    fn plan_decodes(&mut self, order: &[usize], parts: &mut Vec<StepPart>) {
        for &at in order {
            let decodes = self.sequences[at].as_ref().is_some_and(Sequence::decodes);
            if decodes && self.make_room(at, 1, parts) > 0 {
                self.compute(at, 1, parts);
            }
        }
    }

    fn plan_prompts(&mut self, order: &[usize], parts: &mut Vec<StepPart>) {
        if !self.turns.prompts_may() {
            self.add_prompts(order, SHORT_PROMPT_TOKENS, parts);
        }
        if self.turns.prompts_may() || parts.is_empty() {
            self.add_prompts(order, u32::MAX, parts);
        }
    }

    /// Adds prompts of which at most `pending` tokens are left, and no more than that together.
    fn add_prompts(&mut self, order: &[usize], pending: u32, parts: &mut Vec<StepPart>) {
        let mut left = match parts.is_empty() {
            true => self.limits.step_tokens,
            false => self.limits.prefill_beside_decode,
        };
        left = left.min(self.limits.step_tokens.saturating_sub(parts.len() as u32)).min(pending);
        let even = self.even_length(left);
        let (mut time, mut first) = (self.step_time(), true);
        for at in self.prompts_in_order(order, left) {
            let may = |sequence: &Sequence| sequence.pending() <= pending;
            if left == 0 || !self.sequences[at].as_ref().is_some_and(may) || !self.begin(at, parts)
            {
                continue;
            }
            let Some(sequence) = &self.sequences[at] else { continue };
            let whole = self.limits.sharing == Sharing::Nothing;
            let most = if whole { sequence.chunk_tokens } else { left.min(even) };
            let most = most.min(self.fitting(at, time, first || order.first() == Some(&at)));
            let most = most.min(sequence.until_mark());
            let tokens = self.make_room(at, sequence.pending().min(most), parts);
            if tokens > 0 {
                self.compute(at, tokens, parts);
                (time, first) = (self.after(time, at, tokens), false);
            }
            left = if whole { 0 } else { left - tokens };
        }
    }

    /// Finds the longest prefix computed before this step for a sequence that has not
    /// begun; `false` while an older one is about to compute a longer one.
    fn begin(&mut self, at: usize, parts: &[StepPart]) -> bool {
        if let Sharing::States { .. } = self.limits.sharing {
            return self.begin_at_state(at);
        }
        let Some(sequence) = &self.sequences[at] else { return false };
        if sequence.disk.is_loading() {
            return false;
        }
        if sequence.begun || self.limits.sharing != Sharing::Prefixes {
            return true;
        }
        let wanted = &sequence.tokens[..sequence.tokens.len() - 1];
        let others = || self.sequences.iter().enumerate().filter(|&(other, _)| other != at);
        let (tokens, from) = others()
            .filter_map(|(other, donor)| {
                let coming = parts.iter().find(|part| usize::from(part.sequence) == other);
                let prefix = donor.as_ref()?.computed_prefix(wanted);
                Some((coming.map_or(prefix, |part| prefix.min(part.first as usize)), other))
            })
            .max_by_key(|&(tokens, other)| (tokens, std::cmp::Reverse(other)))
            .unwrap_or((0, 0));
        let older = |other: &Sequence| other.age() < sequence.age() && other.age().is_some();
        let awaited = others().filter_map(|(_, other)| other.as_ref()).any(|other| {
            older(other)
                && !other.decodes()
                && common(&other.tokens, wanted) >= tokens + PREFIX_TOKENS_MIN
        });
        if awaited {
            return false;
        }
        let copied = |end: u32| end as usize >= PREFIX_TOKENS_MIN;
        let Some(to_load) = self.worth_loading(at, tokens, copied) else {
            self.copy_prefix(from, at, tokens);
            return true;
        };
        self.copy_prefix(from, at, to_load.start as usize);
        self.wait_for(at, to_load.segments);
        false
    }

    pub(super) fn copy_prefix(&mut self, from: usize, to: usize, tokens: usize) {
        self.clock += 1;
        let mut cells = Vec::new();
        if tokens >= PREFIX_TOKENS_MIN
            && let Some(donor) = &mut self.sequences[from]
        {
            cells.extend_from_slice(&donor.cells[..tokens]);
            if let Role::Kept { used } = &mut donor.role {
                *used = self.clock;
            }
            let (from, to) = (from as u16, to as u16);
            self.changes.push(Change::Copy { from, to, tokens: tokens as u32 });
            self.figures.reused_tokens += tokens as u64;
        }
        cells.iter().for_each(|&cell| self.cells.share(cell));
        if let Some(sequence) = &mut self.sequences[to] {
            sequence.cells = cells;
            sequence.begun = true;
        }
    }

    /// Frees cells until `wanted` are there: kept prefixes first, then sequences
    /// younger than `at`. How many `at` may take.
    pub(super) fn make_room(&mut self, at: usize, wanted: u32, parts: &mut Vec<StepPart>) -> u32 {
        while self.cells.free() < wanted {
            if !self.forget_oldest_kept() && !self.send_back_younger(at, parts) {
                break;
            }
        }
        let free = self.cells.free().min(wanted);
        let whole = self.limits.sharing == Sharing::Nothing;
        if whole && free < wanted { 0 } else { free }
    }

    fn compute(&mut self, at: usize, tokens: u32, parts: &mut Vec<StepPart>) {
        let Some(sequence) = &mut self.sequences[at] else { return };
        let Role::Active { request, .. } = sequence.role else { return };
        let first = sequence.cells.len() as u32;
        let decodes = sequence.decodes();
        sequence.cells.extend((0..tokens).filter_map(|_| self.cells.take()));
        let samples = sequence.pending() == 0;
        parts.push(StepPart { request, sequence: at as u16, first, tokens, samples, decodes });
    }

    pub(super) fn forget_oldest_kept(&mut self) -> bool {
        let oldest = self.oldest_kept();
        if let Some(at) = oldest {
            self.forget(at);
        }
        oldest.is_some()
    }

    /// The youngest active sequence younger than `at` waits again, first in the queue.
    fn send_back_younger(&mut self, at: usize, parts: &mut Vec<StepPart>) -> bool {
        let age = self.sequences[at].as_ref().and_then(Sequence::age);
        let holders = self.active().filter(|(_, sequence)| !sequence.cells.is_empty());
        let youngest = holders.map(|(at, sequence)| (sequence.age(), at)).max();
        let Some((_, victim)) = youngest.filter(|&(youngest, _)| youngest > age) else {
            return false;
        };
        if let Some(sequence) = self.sequences[victim].clone()
            && let Role::Active { request, age } = sequence.role
        {
            parts.retain(|part| part.request != request);
            let Sequence { client, tokens, chunk_tokens, boundaries, disk, .. } = sequence;
            let (prompt_tokens, age) = (disk.prompt_tokens, Some(age));
            self.waiting.go_back(Waiting {
                request,
                client,
                tokens,
                prompt_tokens,
                chunk_tokens,
                boundaries,
                age,
            });
            self.figures.sent_back += 1;
        }
        self.forget(victim);
        true
    }

    pub(super) fn forget(&mut self, at: usize) {
        let Some(sequence) = self.sequences[at].take() else { return };
        self.wake(&sequence);
        sequence.cells.iter().for_each(|&cell| self.cells.give(cell));
        self.changes.push(Change::Drop { sequence: at as u16 });
        self.release(&sequence.saved);
    }

    /// A sequence that was kept is in use again, if only to be given up.
    pub(super) fn wake(&mut self, sequence: &Sequence) {
        if sequence.age().is_none() {
            sequence.cells.iter().for_each(|&cell| self.cells.wake(cell));
        }
    }

    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        let sequences = self.sequences.iter().enumerate();
        sequences.filter_map(|(at, s)| Some((at, s.as_ref().filter(|s| s.age().is_some())?)))
    }

    pub(super) fn oldest_first(&self) -> Vec<usize> {
        let mut order: Vec<_> = self.active().map(|(at, s)| (s.age(), at)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, at)| at).collect()
    }

    fn find(&self, request: RequestId) -> Option<usize> {
        let is = |sequence: &Sequence| matches!(sequence.role, Role::Active { request: r, .. } if r == request);
        self.active().find(|(_, sequence)| is(sequence)).map(|(at, _)| at)
    }
}
