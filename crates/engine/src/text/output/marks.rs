//! Text up to the first of several markers, when it arrives in pieces.

/// Text that was not returned yet.
#[derive(Debug, Default)]
pub(super) struct Marks {
    held: String,
}

/// What comes next in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Text before a marker, and which marker follows it.
    Mark(String, &'static str),
    /// Text that no marker can begin in; the rest is held back.
    Text(String),
}

impl Marks {
    pub(super) fn push(&mut self, text: &str) {
        self.held.push_str(text);
    }

    /// Puts text back, before all that is held.
    pub(super) fn unread(&mut self, text: &str) {
        self.held.insert_str(0, text);
    }

    /// Text and the first marker in it, or the text that is certain.
    pub(super) fn next(&mut self, marks: &[&'static str]) -> Found {
        let first = marks.iter().filter_map(|mark| Some((self.held.find(mark)?, *mark))).min();
        if let Some((at, mark)) = first {
            let rest = self.held.split_off(at + mark.len());
            let mut text = std::mem::replace(&mut self.held, rest);
            text.truncate(at);
            return Found::Mark(text, mark);
        }
        let begun = |mark: &&str| {
            let ends = mark.char_indices().map(|(at, _)| at).rev();
            ends.into_iter().find(|&len| self.held.ends_with(&mark[..len])).unwrap_or(0)
        };
        let unsure = marks.iter().map(begun).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - unsure);
        Found::Text(std::mem::replace(&mut self.held, rest))
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}
