//! Changes of a vocabulary: its kind, tokens, merges, types, scores, special ids and template.

use super::draft::Draft;
use super::edit::set;
use super::values;
use super::words::{PRE_TOKENIZERS, TOKENIZER_KEYS, TOKENIZERS, one_of};
use fastrand::Rng;
use motley_model::gguf::{MetaArray, MetaValue, Metadata, StringArray};

const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";

/// Templates that end in different ways.
const TEMPLATES: [&str; 6] = [
    "",
    "{{ messages[0].content",
    "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
    "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    "{{ raise_exception('no') }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
];

pub(super) fn model(draft: &mut Draft, random: &mut Rng) -> String {
    let model = one_of(random, TOKENIZERS);
    set(draft.metadata(), "tokenizer.ggml.model", model.into())
}

pub(super) fn pre(draft: &mut Draft, random: &mut Rng) -> String {
    let pre = one_of(random, PRE_TOKENIZERS);
    set(draft.metadata(), "tokenizer.ggml.pre", pre.into())
}

pub(super) fn tokens(draft: &mut Draft, random: &mut Rng) -> String {
    let mut tokens = strings(draft.metadata(), TOKENS);
    if tokens.is_empty() {
        return "nothing".into();
    }
    let what = match random.u8(0..8) {
        0 => {
            for _ in 0..50 {
                let which = random.usize(..tokens.len());
                tokens[which] = values::bytes(random, 8);
            }
            "50 of any bytes"
        }
        1 => {
            tokens.truncate(random.choice([0, 1, 10, 4000]).unwrap_or(0));
            "cut"
        }
        2 => {
            tokens.iter_mut().for_each(Vec::clear);
            "all empty"
        }
        3 => {
            let first = tokens[0].clone();
            tokens.fill(first);
            "all the same"
        }
        4 => {
            let which = random.usize(..tokens.len());
            tokens[which] = vec![b'A'; 100_000];
            "one of 100 KB"
        }
        5 => {
            let (one, other) = (random.usize(..tokens.len()), random.usize(..tokens.len()));
            tokens[one] = tokens[other].clone();
            "one twice"
        }
        6 => {
            tokens.reverse();
            "in reverse"
        }
        _ => {
            let which = random.usize(..tokens.len());
            tokens[which] = format!("[EMPTY_{}]", random.usize(..tokens.len())).into();
            let empty = random.usize(..tokens.len());
            tokens[empty].clear();
            "one empty, one called as llama.cpp calls such"
        }
    };
    put(draft.metadata(), TOKENS, tokens);
    format!("tokens {what}")
}

pub(super) fn merges(draft: &mut Draft, random: &mut Rng) -> String {
    let mut merges = strings(draft.metadata(), MERGES);
    let what = match random.u8(0..5) {
        0 => {
            merges.iter_mut().for_each(Vec::clear);
            "all empty"
        }
        1 => {
            merges = vec![b" ".to_vec(); 10];
            "ten spaces"
        }
        2 if !merges.is_empty() => {
            for _ in 0..50 {
                let which = random.usize(..merges.len());
                merges[which] = values::bytes(random, 12);
            }
            "50 of any bytes"
        }
        3 => {
            merges.iter_mut().for_each(|merge| *merge = b"a  b".to_vec());
            "all with two spaces"
        }
        _ => {
            merges.clear();
            "none"
        }
    };
    put(draft.metadata(), MERGES, merges);
    format!("merges {what}")
}

pub(super) fn types(draft: &mut Draft, random: &mut Rng) -> String {
    let count = strings(draft.metadata(), TOKENS).len();
    let count = random.choice([0, 1, count, count, count, count + 1]).unwrap_or(0);
    let mut types = vec![random.choice([0, 1, 2, 3, 4, 5, 6, 7, 255, -1]).unwrap_or(0); count];
    if random.bool() {
        types.iter_mut().for_each(|ty| *ty = random.i32(0..7));
    }
    set(draft.metadata(), "tokenizer.ggml.token_type", types.into())
}

pub(super) fn scores(draft: &mut Draft, random: &mut Rng) -> String {
    let count = strings(draft.metadata(), TOKENS).len();
    let count = random.choice([0, 1, count, count, count + 1]).unwrap_or(0);
    let scores: Vec<f32> = (0..count).map(|_| values::real(random)).collect();
    set(draft.metadata(), "tokenizer.ggml.scores", scores.into())
}

pub(super) fn special(draft: &mut Draft, random: &mut Rng) -> String {
    let ids: Vec<_> =
        TOKENIZER_KEYS.split_whitespace().filter(|key| key.ends_with("_id")).collect();
    let key = random.choice(ids).unwrap_or("tokenizer.ggml.bos_token_id");
    set(draft.metadata(), key, (values::integer(random) as u32).into())
}

pub(super) fn template(draft: &mut Draft, random: &mut Rng) -> String {
    let template = random.choice(TEMPLATES).unwrap_or_default();
    set(draft.metadata(), "tokenizer.chat_template", template.into())
}

fn strings(metadata: &Metadata, key: &str) -> Vec<Vec<u8>> {
    match metadata.get(key) {
        Some(MetaValue::Array(MetaArray::String(strings))) => {
            strings.iter().map(<[u8]>::to_vec).collect()
        }
        _ => vec![],
    }
}

fn put(metadata: &mut Metadata, key: &str, strings: Vec<Vec<u8>>) {
    metadata.insert(key, strings.into_iter().collect::<StringArray>());
}
