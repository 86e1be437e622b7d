//! Tokens to text as they arrive: a character may be spread over several tokens.

/// Turns token bytes into text, holding back incomplete characters.
#[derive(Debug, Default)]
pub struct TextStream {
    pending: Vec<u8>,
}

impl TextStream {
    /// Adds a token's bytes; returns the text that is now complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.pending) {
                Ok(whole) => {
                    text.push_str(whole);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(
                        std::str::from_utf8(&self.pending[..valid]).expect("just checked"),
                    );
                    match error.error_len() {
                        // The end of a character is still to come.
                        None => {
                            self.pending.drain(..valid);
                            return text;
                        }
                        Some(bad) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            self.pending.drain(..valid + bad);
                        }
                    }
                }
            }
        }
    }

    /// What is left when no more tokens come.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_over_three_tokens_appears_once_whole() {
        let mut stream = TextStream::default();
        let snowman = "☃".as_bytes();
        assert_eq!(stream.push(&snowman[..1]), "");
        assert_eq!(stream.push(&snowman[1..2]), "");
        assert_eq!(stream.push(&[snowman[2], b'!']), "☃!");
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut stream = TextStream::default();
        assert_eq!(stream.push(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(stream.push(b"\xE2"), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
    }
}
