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
                    let (there, announced) = written(&self.pending[valid..]);
                    // The end of a character is still to come.
                    if there < announced && valid + there == self.pending.len() {
                        self.pending.drain(..valid);
                        return text;
                    }
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.pending.drain(..valid + there);
                }
            }
        }
    }

    /// What is left when no more tokens come.
    pub fn finish(&mut self) -> String {
        let begun = !std::mem::take(&mut self.pending).is_empty();
        if begun { char::REPLACEMENT_CHARACTER.into() } else { String::new() }
    }
}

/// How many bytes of one character are there, and how many its first byte announces. A character that
/// is written wrongly (longer than needed, beyond Unicode) is one character in what
/// a reader sees, too.
fn written(bytes: &[u8]) -> (usize, usize) {
    let announced = match bytes[0] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
        _ => 1,
    };
    let follow = bytes[1..].iter().take(announced - 1).take_while(|byte| **byte & 0xC0 == 0x80);
    (1 + follow.count(), announced)
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
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn a_character_written_wrongly_is_one() {
        for wrong in [&b"\xF0\x8F\xBF\xBF"[..], b"\xF4\x90\x80\x80", b"\xE0\x9F\xBF", b"\xC0\xA1"] {
            let mut stream = TextStream::default();
            let mut text = stream.push(b"a");
            wrong.iter().for_each(|byte| text += &stream.push(&[*byte]));
            text += &stream.push(b"b");
            assert_eq!(text + &stream.finish(), "a\u{FFFD}b", "{wrong:x?}");
        }
    }
}
