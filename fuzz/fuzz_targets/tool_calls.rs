//! Any text as a model's output, in every format: nothing panics, nothing is made up, and it does not
//! matter in which pieces the text came.
//!
//! What follows the first NUL byte says how long the pieces are, in characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motley_engine::text::output::{Format, OutputFormat, Parsed, Parser};

const FORMATS: [Format; 17] = [
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
        let whole = parsed(format, [&*text]);
        assert_eq!(whole, parsed(format, pieces(&text, &[0])), "{format:?}, in single characters");
        assert_eq!(whole, parsed(format, pieces(&text, cuts)), "{format:?}, in pieces");
        let bytes = whole.text.len() + whole.thought.len();
        assert!(bytes <= text.len(), "{format:?} made {bytes} bytes of text of {}", text.len());
    }
});

/// Everything that was parsed, one after the other.
fn parsed<'a>(format: OutputFormat, pieces: impl IntoIterator<Item = &'a str>) -> Parsed {
    let mut parser = Parser::new(format);
    let mut all = Parsed::default();
    let mut add = |parsed: Parsed| {
        all.text.push_str(&parsed.text);
        all.thought.push_str(&parsed.thought);
        all.calls.extend(parsed.calls);
    };
    pieces.into_iter().for_each(|piece| add(parser.push(piece)));
    add(parser.finish());
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
