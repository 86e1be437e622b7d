//! Any text as a model's output, in every format: nothing panics, nothing is made up, and it does not
//! matter in which pieces the text came.
//!
//! What follows the first NUL byte says how long the pieces are, in characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motley_engine::text::output::{ArgumentTypes, Calls, Format, OutputFormat, Parsed, Parser};
use std::sync::Arc;

const FORMATS: [Format; 18] = [
    Format::Plain,
    Format::Hermes,
    Format::Qwen,
    Format::Glm,
    Format::DeepSeek,
    Format::Dsml,
    Format::Kimi,
    Format::MiniMax,
    Format::Seed,
    Format::Gemma,
    Format::Llama,
    Format::Pythonic,
    Format::Granite,
    Format::Nemotron,
    Format::Plural,
    Format::Mistral,
    Format::Harmony,
    Format::Forced,
];

fuzz_target!(|bytes: &[u8]| {
    let (text, cuts) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    let thinking = OutputFormat::of("</think>", &[]);
    let begun = thinking.after("<think>\n");
    let formats = FORMATS.iter().flat_map(|&calls| {
        [OutputFormat::PLAIN, thinking, begun].map(|format| OutputFormat { calls, ..format })
    });
    for format in formats {
        let [whole, streamed] = [Calls::Whole, Calls::InPieces].map(|calls| {
            let read = |pieces: &[&str]| parsed(format, calls, pieces);
            let whole = read(&[&*text]);
            assert_eq!(whole, read(&pieces(&text, &[0])), "{format:?}, in single characters");
            assert_eq!(whole, read(&pieces(&text, cuts)), "{format:?}, in pieces");
            let bytes = whole.text.len() + whole.thought.len();
            assert!(bytes <= text.len(), "{format:?} made {bytes} bytes of text of {}", text.len());
            whole
        });
        assert!(whole == streamed || broke_off(&streamed), "{format:?}: {whole:?}, {streamed:?}");
    }
});

/// Whether a call is no whole one, as its arguments say.
fn broke_off(parsed: &Parsed) -> bool {
    parsed
        .calls
        .iter()
        .any(|call| serde_json::from_str::<serde_json::Value>(&call.arguments).is_err())
}

/// Everything that was parsed, one after the other.
fn parsed(format: OutputFormat, calls: Calls, pieces: &[&str]) -> Parsed {
    let mut parser = Parser::with_types(format, Arc::<ArgumentTypes>::default(), calls);
    let mut all = Parsed::default();
    pieces.iter().for_each(|piece| all.extend(parser.push(piece)));
    all.extend(parser.finish());
    all
}

/// `text` cut into pieces of one character more than `cuts` say, over and over.
fn pieces<'a>(text: &'a str, cuts: &[u8]) -> Vec<&'a str> {
    let mut lengths = cuts.iter().map(|&cut| 1 + usize::from(cut)).cycle();
    let (mut rest, mut pieces) = (text, Vec::new());
    while !rest.is_empty() {
        let chars = lengths.next().unwrap_or(usize::MAX);
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
