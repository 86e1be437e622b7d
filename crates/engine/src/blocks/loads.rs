//! The distinct experts of a block and how many tokens chose each. Counts; keeps its buffers from
//! block to block.

/// Experts in order of first appearance, with their tokens.
#[derive(Default)]
pub(crate) struct Loads {
    /// Place of each expert in `experts`, or `None`.
    place: Vec<Option<u16>>,
    experts: Vec<u16>,
    tokens: Vec<u32>,
}

impl Loads {
    /// Counts rows by their expert; those counted before are forgotten.
    pub(crate) fn count(&mut self, rows: impl Iterator<Item = u32>) {
        self.experts.drain(..).for_each(|expert| self.place[usize::from(expert)] = None);
        self.tokens.clear();
        for expert in rows {
            let (at, expert) = (expert as usize, expert as u16);
            if self.place.len() <= at {
                self.place.resize(at + 1, None);
            }
            let place = *self.place[at].get_or_insert_with(|| {
                self.experts.push(expert);
                self.tokens.push(0);
                self.experts.len() as u16 - 1
            });
            self.tokens[usize::from(place)] += 1;
        }
    }

    /// The experts.
    pub(crate) fn experts(&self) -> &[u16] {
        &self.experts
    }

    /// Tokens of each.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}
