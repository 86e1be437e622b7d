//! Headers of small valid models with values changed, given to the real program: `motley run` answers
//! or refuses with a code of its own and in time, whatever becomes of the child that tries files for
//! it. What our own checks refuse is not run.
//!
//! A header they accept that ends the child is a finding, no failure: the parent must survive, and
//! does. Each is written as a line of JSON to the file `MOTLEY_FUZZ_FINDINGS` names. The program is
//! `MOTLEY_FUZZ_PROGRAM`; `cargo xtask fuzz` sets both.
#![no_main]

mod edits;
mod program;

use std::fs::OpenOptions;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::OnceLock;

use edits::{Draft, Edits};
use libfuzzer_sys::{Corpus, fuzz_target};
use motley_model::gguf::{GgufHeader, GgufLimits};
use motley_model::{ModelSpec, check_values};
use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::synth::{self, Arch, Preset, Request};
use program::Ending;

fuzz_target!(|edits: Edits| -> Corpus { trial(&edits) });

fn trial(edits: &Edits) -> Corpus {
    let models = models();
    let (mut draft, said) = edits.of(models);
    let Some(file) = draft.file() else { return Corpus::Reject };
    let header = GgufHeader::read(Cursor::new(&file), &GgufLimits::default());
    let Ok(header) = header else { return Corpus::Keep };
    let headers = [header];
    if check_values(&headers).is_err() || ModelSpec::from_headers(&headers).is_err() {
        return Corpus::Keep;
    }
    match program::run(&file) {
        Ending::Answered | Ending::Refused => {}
        Ending::ChildFailed(words) => report(&said, &words),
        Ending::Bad(how) => panic!("motley {how} on {said}"),
    }
    Corpus::Keep
}

/// A small model of every architecture there is a generator for.
fn models() -> &'static [Draft] {
    static MODELS: OnceLock<Vec<Draft>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        Arch::ALL.iter().map(|arch| model(*arch, folder.path())).collect()
    })
}

fn model(arch: Arch, folder: &Path) -> Draft {
    let mut request = Request::of_preset(Preset::Test(arch));
    (request.shape.layers, request.shape.experts) = (2, 8);
    let path = folder.join(format!("{arch}.gguf"));
    synth::generate(&request, &Tokenizer::of_bytes(), &path, &mut |_| {}).expect("a model");
    Draft::of(std::fs::read(path).expect("the model"))
}

/// Keeps what ended the child.
fn report(said: &str, words: &str) {
    let Some(path) = std::env::var_os("MOTLEY_FUZZ_FINDINGS") else { return };
    let line = serde_json::json!({ "header": said, "child": words });
    let file = OpenOptions::new().create(true).append(true).open(path);
    writeln!(file.expect("the file of findings opens"), "{line}").expect("it is written");
}
