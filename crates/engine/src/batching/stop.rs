//! Stop strings in text that arrives in pieces: what may be the beginning of one is
//! held back until it is clear.

use std::sync::Arc;

/// Looks for the first of several stop strings.
#[derive(Debug, Clone, Default)]
pub(super) struct StopText {
    stops: Arc<[String]>,
    held: String,
}

impl StopText {
    /// Empty stop strings are ignored.
    pub(super) fn new(stops: Arc<[String]>) -> Self {
        Self { stops, held: String::new() }
    }

    /// Adds text; returns what may be shown, and which stop string came, if one did: then
    /// nothing of it or after it is shown.
    pub(super) fn push(&mut self, text: &str) -> (String, Option<usize>) {
        self.held.push_str(text);
        let stops = self.stops.iter().enumerate().filter(|(_, stop)| !stop.is_empty());
        let found = stops.filter_map(|(index, stop)| Some((self.held.find(stop.as_str())?, index)));
        if let Some((at, index)) = found.min() {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(index));
        }
        let sure = self.held.len() - self.maybe_begun();
        let rest = self.held.split_off(sure);
        (std::mem::replace(&mut self.held, rest), None)
    }

    /// What was held back, when no more comes.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes at the end that may be the beginning of a stop string.
    fn maybe_begun(&self) -> usize {
        let longest = |stop: &String| {
            let ends = stop.char_indices().map(|(at, _)| at).rev();
            ends.into_iter().find(|&len| self.held.ends_with(&stop[..len])).unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stops: &[&str], pieces: &[&str]) -> (String, Option<usize>) {
        let mut text = StopText::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut all = String::new();
        for piece in pieces {
            let (sure, stopped) = text.push(piece);
            all.push_str(&sure);
            if stopped.is_some() {
                return (all, stopped);
            }
        }
        all.push_str(&text.finish());
        (all, None)
    }

    #[test]
    fn a_stop_string_over_several_pieces_is_never_shown() {
        assert_eq!(shown(&["END"], &["a E", "N", "D b"]), ("a ".into(), Some(0)));
        assert_eq!(shown(&["\n\n"], &["a\n", "\n"]), ("a".into(), Some(0)));
        assert_eq!(shown(&["é!"], &["caf", "é", "!"]), ("caf".into(), Some(0)));
    }

    #[test]
    fn what_only_looks_like_one_is_shown_in_the_end() {
        assert_eq!(shown(&["END"], &["a EN", "Z"]), ("a ENZ".into(), None));
        assert_eq!(shown(&["END"], &["a EN"]), ("a EN".into(), None));
        assert_eq!(shown(&[""], &["abc"]), ("abc".into(), None));
    }

    #[test]
    fn the_first_of_several_wins() {
        assert_eq!(shown(&["c", "b"], &["abc"]), ("a".into(), Some(1)));
    }

    #[test]
    fn sure_text_is_not_held_back() {
        let mut text = StopText::new(["stop".to_owned()].into());
        assert_eq!(text.push("hello st"), ("hello ".into(), None));
        assert_eq!(text.push("ay"), ("stay".into(), None));
    }
}
