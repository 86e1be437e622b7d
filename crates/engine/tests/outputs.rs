//! What models of each family write, as their own templates write it and as they get it wrong: parsed
//! alike in whatever pieces it comes, and never lost. Needs no model.
//!
//! A family is two files in `outputs/`: its outputs, each under a title, and what they mean.

use motley_engine::text::output::{
    ArgumentTypes, Call, Calls, Format, OutputFormat, Parsed, Parser, Said,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// One family's outputs.
struct Family {
    name: String,
    format: OutputFormat,
    /// Title, output, and what it means.
    cases: Vec<(String, String, Value)>,
}

#[test]
fn every_output_is_read_alike_in_all_pieces() {
    let types = types();
    for Family { name, format, cases } in families() {
        for (title, output, expected) in cases {
            let read = |pieces: &mut dyn Iterator<Item = &str>| meaning(format, &types, pieces);
            let ends: Vec<usize> = output.char_indices().map(|(at, _)| at).collect();
            for &at in &ends {
                let (first, second) = output.split_at(at);
                let parsed = read(&mut [first, second].into_iter());
                assert_eq!(parsed, expected, "{name}, {title}, cut at {at}");
            }
            for size in 1..=ends.len() {
                let parsed = read(&mut pieces(&output, size).into_iter());
                assert_eq!(parsed, expected, "{name}, {title}, in pieces of {size}");
            }
        }
    }
}

/// Said while it is written, an output comes to the same in all pieces; and to what it is when calls are
/// read whole, but for a call that broke off, whose arguments show it.
#[test]
fn calls_in_pieces_come_to_whole_ones() {
    let types = types();
    for Family { name, format, cases } in families() {
        for (title, output, _) in cases {
            let read = |pieces: &[&str]| streamed(format, &types, &mut pieces.iter().copied());
            let expected = parsed(format, &types, &mut [output.as_str()].into_iter());
            let said = read(&[&output]);
            assert!(
                said == expected || broke_off(&said),
                "{name}, {title}: {said:?}, {expected:?}"
            );
            let ends: Vec<usize> = output.char_indices().map(|(at, _)| at).collect();
            for &at in &ends {
                let (first, second) = output.split_at(at);
                assert_eq!(read(&[first, second]), said, "{name}, {title}, cut at {at}");
            }
            for size in 1..=ends.len() {
                assert_eq!(read(&pieces(&output, size)), said, "{name}, {title}, pieces of {size}");
            }
        }
    }
}

/// Of every family some call is said before it is whole: its name, then its arguments in pieces.
#[test]
fn calls_begin_before_they_are_whole() {
    let types = types();
    for Family { name, format, cases } in families() {
        let pieces_max =
            cases.iter().map(|(_, output, _)| most_pieces(format, &types, output)).max();
        assert!(pieces_max > Some(2), "{name}: arguments in {pieces_max:?} pieces");
    }
}

/// Pieces of the call that has most of them.
fn most_pieces(format: OutputFormat, types: &Arc<ArgumentTypes>, output: &str) -> usize {
    let mut parser = Parser::with_types(format, Arc::clone(types), Calls::InPieces);
    let mut counts = vec![0];
    for piece in pieces(output, 1) {
        for said in parser.push(piece) {
            match said {
                Said::Call(_) => counts.push(0),
                Said::Arguments(_) => {
                    if let Some(count) = counts.last_mut() {
                        *count += 1;
                    }
                }
                _ => {}
            }
        }
    }
    counts.into_iter().max().unwrap_or(0)
}

/// Whether a call is no whole one, as its arguments say.
fn broke_off(parsed: &Parsed) -> bool {
    let broken = |call: &Call| serde_json::from_str::<Value>(&call.arguments).is_err();
    parsed.calls.iter().any(broken)
}

/// At every place where an output may be cut off, what was written is a call or text to the letter.
#[test]
fn an_output_cut_off_anywhere_keeps_its_text() {
    let types = types();
    for Family { name, format, cases } in families() {
        for (title, output, _) in cases {
            for (at, _) in output.char_indices() {
                let cut = &output[..at];
                let parsed = parsed(format, &types, &mut [cut].into_iter());
                let marks = format.calls == Format::Harmony;
                let kept = parsed.text.len() + parsed.thought.len();
                let lost = parsed.calls.is_empty() && format.thoughts.is_none() && !marks;
                assert!(!lost || parsed.text == cut, "{name}, {title}: {cut:?} is {parsed:?}");
                assert!(kept <= cut.len(), "{name}, {title}: {cut:?} is {parsed:?}");
            }
        }
    }
}

proptest! {
    /// Parts of outputs in any order: pieces change nothing, and text that is no call stays.
    #[test]
    fn no_text_is_lost(
        family in any::<prop::sample::Index>(),
        parts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..40_usize), 1..8),
        size in 1..9_usize,
    ) {
        let families = families();
        let Family { format, cases, .. } = family.get(&families);
        let part = |(case, from, length): &(prop::sample::Index, prop::sample::Index, usize)| {
            let output: Vec<char> = case.get(cases).1.chars().collect();
            output.iter().skip(from.index(output.len())).take(*length).collect::<String>()
        };
        let text: String = parts.iter().map(part).collect();
        let types = types();
        let whole = parsed(*format, &types, &mut [text.as_str()].into_iter());
        let cut = parsed(*format, &types, &mut pieces(&text, size).into_iter());
        prop_assert_eq!(&whole, &cut);
        prop_assert!(whole.text.len() + whole.thought.len() <= text.len());
        let said = streamed(*format, &types, &mut [text.as_str()].into_iter());
        prop_assert_eq!(&said, &streamed(*format, &types, &mut pieces(&text, size).into_iter()));
        prop_assert!(said == whole || broke_off(&said), "{:?}, {:?}", said, whole);
        let plain = OutputFormat { thoughts: None, ..*format };
        let spoken = parsed(plain, &types, &mut [text.as_str()].into_iter());
        if spoken.calls.is_empty() && format.calls != Format::Harmony {
            prop_assert_eq!(spoken.text, text);
        }
    }
}

fn families() -> Vec<Family> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/outputs");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(family).collect()
}

fn family(outputs: PathBuf) -> Family {
    let written = fs::read_to_string(&outputs).unwrap();
    let meant = fs::read_to_string(outputs.with_extension("json")).unwrap();
    let meant: Value = serde_json::from_str(&meant).unwrap();
    let format = OutputFormat::of(meant["template"].as_str().unwrap(), &[]);
    let format = format.after(meant["prompt"].as_str().unwrap());
    let written = format!("\n{}", written.strip_suffix('\n').unwrap_or(&written));
    let case = |part: &str| {
        let (title, output) = part.split_once('\n').unwrap();
        let expected = meant["cases"][title].clone();
        assert!(expected.is_object(), "what `{title}` means");
        (title.to_owned(), output.to_owned(), expected)
    };
    let cases: Vec<_> = written.split("\n=== ").skip(1).map(case).collect();
    assert_eq!(cases.len(), meant["cases"].as_object().unwrap().len());
    Family { name: outputs.file_stem().unwrap().to_string_lossy().into_owned(), format, cases }
}

/// The functions that the outputs call.
fn types() -> Arc<ArgumentTypes> {
    let weather = json!({ "properties": {
        "city": { "type": "string" }, "days": { "type": "integer" }, "hourly": { "type": "boolean" },
    } });
    let file = json!({ "properties": {
        "path": { "type": "string" }, "content": { "type": "string" }, "tags": { "type": "array" },
    } });
    Arc::new(ArgumentTypes::new([
        ("get_weather", weather.as_object()),
        ("write_file", file.as_object()),
    ]))
}

/// Everything that is parsed, one after the other, calls when they are whole.
fn parsed(
    format: OutputFormat,
    types: &Arc<ArgumentTypes>,
    pieces: &mut dyn Iterator<Item = &str>,
) -> Parsed {
    read(Parser::with_types(format, Arc::clone(types), Calls::Whole), pieces)
}

/// The same, calls as they come.
fn streamed(
    format: OutputFormat,
    types: &Arc<ArgumentTypes>,
    pieces: &mut dyn Iterator<Item = &str>,
) -> Parsed {
    read(Parser::with_types(format, Arc::clone(types), Calls::InPieces), pieces)
}

fn read(mut parser: Parser, pieces: &mut dyn Iterator<Item = &str>) -> Parsed {
    let mut all = Parsed::default();
    pieces.for_each(|piece| all.extend(parser.push(piece)));
    all.extend(parser.finish());
    all
}

/// The same as JSON, arguments included.
fn meaning(
    format: OutputFormat,
    types: &Arc<ArgumentTypes>,
    pieces: &mut dyn Iterator<Item = &str>,
) -> Value {
    let Parsed { text, thought, calls } = parsed(format, types, pieces);
    let arguments = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let call = |call: &Call| json!({ "name": call.name, "arguments": arguments(&call.arguments) });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "text": text, "thought": thought, "calls": calls })
}

fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(size).collect();
    starts.push(text.len());
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}
