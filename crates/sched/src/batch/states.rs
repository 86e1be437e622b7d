//! States saved at the ends of messages, for models whose memory cannot be cut ([`Sharing::States`]):
//! a recurrent layer has one state per sequence, that of its last token. What such layers held at the
//! end of a message is copied aside; a later prompt that begins alike goes on from there.
//!
//! [`Sharing::States`]: super::Sharing::States

use super::planner::{PREFIX_TOKENS_MIN, Planner};
use super::saved::Saved;
use super::segments::ToLoad;
use super::sequence::{Role, Sequence, common};
use super::{Change, StateId};
use std::cmp::Reverse;

/// States nearer to each other are not worth their room.
const SPACING_TOKENS: u32 = 64;
/// Most that are saved of one prompt: the end of its first message, which many prompts share, and
/// the last ones, where it is edited or continued.
const PER_PROMPT_MAX: usize = 4;

/// Where of the ends of a prompt's messages its states are saved, when `computed` tokens are there.
fn marks(boundaries: &[u32], computed: u32) -> Vec<u32> {
    let mut marks: Vec<u32> = Vec::new();
    for &boundary in boundaries.iter().rev() {
        let far = marks.last().is_none_or(|&last| boundary + SPACING_TOKENS <= last);
        if far && boundary >= computed + PREFIX_TOKENS_MIN as u32 {
            marks.push(boundary);
        }
    }
    marks.reverse();
    if marks.len() > PER_PROMPT_MAX {
        marks.drain(1..=marks.len() - PER_PROMPT_MAX);
    }
    marks
}

/// `marks`, and more of them so that from one to the next is no further than a segment may be long.
fn closer(marks: &[u32], computed: u32, most: u32) -> Vec<u32> {
    let mut closer = Vec::new();
    let mut before = computed;
    for &mark in marks {
        while mark.saturating_sub(before) > most.max(1) {
            before += most.max(1);
            closer.push(before);
        }
        closer.push(mark);
        before = mark;
    }
    closer
}

impl Planner {
    /// Where messages of a prompt end: after the tokens that end an answer. Text that has none ends
    /// once, before its last token, which is computed in any case. Nothing is looked for where no
    /// states are saved.
    pub fn boundaries(&self, tokens: &[i32], is_end: impl Fn(i32) -> bool) -> Vec<u32> {
        if !self.states.has_room() {
            return Vec::new();
        }
        let ends = tokens.iter().enumerate().filter(|(_, token)| is_end(**token));
        let mut ends: Vec<u32> = ends.map(|(at, _)| at as u32 + 1).collect();
        if ends.is_empty() {
            ends.push(tokens.len().saturating_sub(1) as u32);
        }
        ends
    }

    /// Has states saved of the sequences that came to the end of a message with the last step.
    pub(super) fn save_due(&mut self) {
        for at in 0..self.sequences.len() {
            let Some(sequence) = &self.sequences[at] else { continue };
            let computed = sequence.cells.len() as u32;
            if sequence.age().is_none() || !sequence.marks.contains(&computed) {
                continue;
            }
            let before = sequence.state_within(computed as usize).map_or(0, |saved| saved.at);
            while let Some(state) = self.states.in_the_way() {
                self.states.outlive(state);
                self.discard(state);
            }
            let state = self.states.add(computed - before);
            if let Some(sequence) = &mut self.sequences[at] {
                sequence.marks.retain(|&mark| mark > computed);
                sequence.saved.push(Saved { state, at: computed });
            }
            self.changes.push(Change::Save { sequence: at as u16, state });
            self.store_state(at);
        }
    }

    /// A state could not be saved: nothing begins with it.
    pub fn on_unsaved(&mut self, state: StateId) {
        self.states.remove(state);
        for sequence in self.sequences.iter_mut().flatten() {
            sequence.saved.retain(|saved| saved.state != state);
        }
    }

    fn discard(&mut self, state: StateId) {
        self.on_unsaved(state);
        self.changes.push(Change::Discard { state });
    }

    /// Discards those of `saved` that no sequence has any more.
    pub(super) fn release(&mut self, saved: &[Saved]) {
        for saved in saved {
            let has = |sequence: &Sequence| sequence.saved.contains(saved);
            if !self.sequences.iter().flatten().any(has) {
                self.discard(saved.state);
            }
        }
    }

    /// Where the next of those that wait goes: on where all that is kept is its beginning, else
    /// into an empty sequence, and into the one it begins like where no other can be emptied.
    pub(super) fn place_by_state(&mut self, next: usize) -> Option<usize> {
        let tokens = self.waiting.tokens(next)?;
        let wanted = &tokens[..tokens.len() - 1];
        let kept = self.sequences.iter().enumerate().filter_map(|(at, sequence)| {
            let kept = sequence.as_ref().filter(|sequence| sequence.age().is_none())?;
            let reusable = kept.reusable(wanted);
            let whole = reusable == kept.cells.len();
            (reusable >= PREFIX_TOKENS_MIN).then_some((reusable, whole, Reverse(at)))
        });
        let best = kept.max();
        if let Some((_, true, Reverse(at))) = best {
            return Some(at);
        }
        let empty = self.sequences.iter().position(Option::is_none);
        let oldest = self.oldest_kept();
        match (empty, best) {
            (Some(at), _) => Some(at),
            (None, Some((_, _, Reverse(at)))) if oldest == Some(at) => Some(at),
            (None, _) => {
                self.forget(oldest?);
                oldest
            }
        }
    }

    /// The sequence at `at` goes on as one that begins with `tokens`: as it is, or from a state.
    pub(super) fn take_over(&mut self, at: usize, tokens: &[i32]) -> (Vec<u32>, Vec<Saved>) {
        let Some(mut kept) = self.sequences[at].take() else { return Default::default() };
        let known = kept.reusable(&tokens[..tokens.len() - 1]);
        let before = kept.saved.clone();
        let whole = known == kept.cells.len();
        let state = kept.state_within(known).filter(|_| !whole && known >= PREFIX_TOKENS_MIN);
        if !whole && state.is_none() {
            self.sequences[at] = Some(kept);
            self.forget(at);
            return Default::default();
        }
        self.wake(&kept);
        if let Some(saved) = state {
            kept.cells.drain(known..).for_each(|cell| self.cells.give(cell));
            kept.saved.retain(|saved| saved.at as usize <= known);
            self.states.touch(saved.state);
            let sequence = at as u16;
            self.changes.push(Change::Restore { sequence, state: saved.state });
            self.changes.push(Change::Cut { sequence, tokens: known as u32 });
        }
        self.figures.reused_tokens += known as u64;
        let gone: Vec<Saved> = before.into_iter().filter(|old| !kept.saved.contains(old)).collect();
        self.release(&gone);
        (kept.cells, kept.saved)
    }

    /// Begins a sequence from the last state that another has of its beginning; `false` while an
    /// older one is about to save a later one.
    pub(super) fn begin_at_state(&mut self, at: usize) -> bool {
        let Some(sequence) = &self.sequences[at] else { return false };
        if sequence.disk.is_loading() {
            return false;
        }
        if sequence.begun {
            return true;
        }
        let wanted = &sequence.tokens[..sequence.tokens.len() - 1];
        let others = || {
            let others = self.sequences.iter().enumerate().filter(|&(other, _)| other != at);
            others.filter_map(|(other, donor)| Some((other, donor.as_ref()?)))
        };
        let best = others()
            .filter_map(|(other, donor)| {
                Some((donor.state_within(donor.computed_prefix(wanted))?, other))
            })
            .filter(|(saved, _)| saved.at as usize >= PREFIX_TOKENS_MIN)
            .max_by_key(|&(saved, other)| (saved.at, Reverse(other)));
        let known = best.map_or(0, |(saved, _)| saved.at as usize);
        let awaited = others().any(|(_, other)| {
            let older = other.age().is_some() && other.age() < sequence.age();
            let alike = common(&other.tokens, wanted);
            let later =
                |&mark: &u32| (known + PREFIX_TOKENS_MIN..=alike).contains(&(mark as usize));
            older && other.marks.iter().any(later)
        });
        if awaited {
            return false;
        }
        let to_load = self.worth_loading(at, known, |end| end as usize == known);
        let begins_in_memory = to_load.as_ref().is_none_or(|load| load.start as usize == known);
        if let Some((saved, from)) = best.filter(|_| begins_in_memory) {
            let states = self.sequences[from].as_ref().map(|donor| donor.saved.clone());
            self.copy_prefix(from, at, known);
            self.states.touch(saved.state);
            self.changes.push(Change::Restore { sequence: at as u16, state: saved.state });
            if let Some(sequence) = &mut self.sequences[at] {
                let shared = states.unwrap_or_default().into_iter();
                sequence.saved = shared.filter(|state| state.at <= saved.at).collect();
            }
        }
        self.set_marks(at);
        let Some(ToLoad { segments, .. }) = to_load else { return true };
        if let (Some(last), Some(sequence)) = (segments.last(), &mut self.sequences[at]) {
            // What is read is a place to begin at like those computed.
            sequence.marks.retain(|&mark| mark > last.end());
            sequence.marks.insert(0, last.end());
        }
        self.wait_for(at, segments);
        false
    }

    /// Chooses where the states of a sequence that begins are saved.
    pub(super) fn set_marks(&mut self, at: usize) {
        let wants = self.states.has_room();
        let longest = self.segments.as_ref().map(|all| all.lengths().with_state_max);
        if let Some(sequence) = &mut self.sequences[at] {
            sequence.begun = true;
            let computed = sequence.cells.len() as u32;
            let marks = if wants { marks(&sequence.boundaries, computed) } else { vec![] };
            sequence.marks = match longest {
                Some(longest) => closer(&marks, computed, longest),
                None => marks,
            };
        }
    }

    pub(super) fn oldest_kept(&self) -> Option<usize> {
        let kept = self.sequences.iter().enumerate().filter_map(|(at, sequence)| {
            match sequence.as_ref()?.role {
                Role::Kept { used } => Some((used, at)),
                Role::Active { .. } => None,
            }
        });
        kept.min().map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_saved_at_the_first_end_and_the_last_ones() {
        assert_eq!(marks(&[], 0), [0; 0]);
        assert_eq!(marks(&[10, 100], 0), [100], "the first is too short to be worth it");
        assert_eq!(marks(&[100, 120, 300], 0), [120, 300], "of two near each other the later");
        let many: Vec<u32> = (1..10).map(|message| 100 * message).collect();
        assert_eq!(marks(&many, 0), [100, 700, 800, 900]);
        assert_eq!(marks(&many, 790), [900], "what is there is not computed again");
        assert_eq!(closer(&[100, 9000], 50, 4096), [100, 4196, 8292, 9000]);
    }
}
