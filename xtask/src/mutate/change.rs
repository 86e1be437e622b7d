//! Changes of a header: keys and tensors. One kind is one function; each says what it did.

use super::draft::Draft;
use super::edit::set;
use super::tokenizer;
use super::values;
use super::words::{ARCHITECTURES, KEYS, TOKENIZER_KEYS, one_of};
use fastrand::Rng;
use motley_model::gguf::{GgmlType, MetaValue, Metadata};

/// A change that was made.
#[derive(Debug)]
pub(super) struct Change {
    /// Which kind.
    pub(super) kind: &'static str,
    /// What exactly.
    pub(super) said: String,
}

/// A change of a draft; what it did, in words.
type Kind = fn(&mut Draft, &mut Rng) -> String;

/// Every kind, the commoner ones more than once.
const KINDS: &[(&str, Kind)] = &[
    ("value", value),
    ("value", value),
    ("number", number),
    ("number", number),
    ("number", number),
    ("type", ty),
    ("missing key", missing),
    ("added key", added),
    ("added key", added),
    ("added key", added),
    ("architecture", architecture),
    ("tokenizer", tokenizer::model),
    ("pre-tokenizer", tokenizer::pre),
    ("tokens", tokenizer::tokens),
    ("merges", tokenizer::merges),
    ("token types", tokenizer::types),
    ("scores", tokenizer::scores),
    ("special ids", tokenizer::special),
    ("template", tokenizer::template),
    ("tensor shape", shape),
    ("tensor name", rename),
    ("tensor type", tensor_type),
    ("tensor missing", drop_tensor),
    ("split", split),
];

/// Makes one change.
pub(super) fn change(draft: &mut Draft, random: &mut Rng) -> Change {
    let (kind, make) = random.choice(KINDS).expect("there are kinds");
    Change { kind, said: make(draft, random) }
}

fn keys(metadata: &Metadata, wanted: fn(&MetaValue) -> bool) -> Vec<String> {
    metadata.iter().filter(|(_, value)| wanted(value)).map(|(key, _)| key.to_owned()).collect()
}

/// Any key, in its own type.
fn value(draft: &mut Draft, random: &mut Rng) -> String {
    change_one(draft, random, |_| true, values::same_type)
}

/// A key that holds a number.
fn number(draft: &mut Draft, random: &mut Rng) -> String {
    let scalar = |value: &MetaValue| !matches!(value, MetaValue::String(_) | MetaValue::Array(_));
    change_one(draft, random, scalar, values::same_type)
}

/// A value of another type.
fn ty(draft: &mut Draft, random: &mut Rng) -> String {
    change_one(draft, random, |_| true, |_, random| values::any(random))
}

fn change_one(
    draft: &mut Draft,
    random: &mut Rng,
    wanted: fn(&MetaValue) -> bool,
    make: fn(&MetaValue, &mut Rng) -> MetaValue,
) -> String {
    let metadata = draft.metadata();
    let Some(key) = random.choice(keys(metadata, wanted)) else { return "nothing".into() };
    let value = make(metadata.get(&key).expect("it was listed"), random);
    set(metadata, &key, value)
}

fn missing(draft: &mut Draft, random: &mut Rng) -> String {
    let metadata = draft.metadata();
    let Some(key) = random.choice(keys(metadata, |_| true)) else { return "nothing".into() };
    metadata.remove(&key);
    format!("without {key}")
}

/// A key llama.cpp knows and the file did not have, or had otherwise.
fn added(draft: &mut Draft, random: &mut Rng) -> String {
    let key = match random.bool() {
        true => format!("{}.{}", draft.architecture(), one_of(random, KEYS)),
        false if random.bool() => one_of(random, TOKENIZER_KEYS).to_owned(),
        false => format!("{}.{}", draft.architecture(), one_of(random, KEYS)),
    };
    let value = match random.u8(0..4) {
        0 | 1 => (values::integer(random) as u32).into(),
        2 => values::real(random).into(),
        _ => values::any(random),
    };
    set(draft.metadata(), &key, value)
}

/// The same numbers under the name of another architecture.
fn architecture(draft: &mut Draft, random: &mut Rng) -> String {
    let (old, new) = (draft.architecture(), one_of(random, ARCHITECTURES));
    let mut renamed = Metadata::new();
    for (key, value) in draft.metadata().iter() {
        let key = match key.strip_prefix(&format!("{old}.")) {
            Some(rest) => format!("{new}.{rest}"),
            None => key.to_owned(),
        };
        renamed.insert(&key, value.clone());
    }
    renamed.insert("general.architecture", new);
    *draft.metadata() = renamed;
    format!("architecture {new}")
}

fn shape(draft: &mut Draft, random: &mut Rng) -> String {
    let part = random.usize(..draft.parts.len());
    let Some(tensor) = random.choice(&mut draft.parts[part].tensors) else {
        return "nothing".into();
    };
    let dims = &mut tensor.desc.dims;
    match random.u8(0..6) {
        0 => dims.reverse(),
        1 if dims.len() > 1 => {
            let first = dims.remove(0);
            dims[0] *= first;
        }
        2 => dims.push(1),
        3 => dims[0] *= 2,
        4 => {
            let which = random.usize(..dims.len());
            dims[which] = random.choice([0, 1, 32, 256, 1 << 20]).unwrap_or(0);
        }
        _ => drop(dims.pop()),
    }
    format!("{} of shape {:?}", tensor.desc.name, tensor.desc.dims)
}

fn rename(draft: &mut Draft, random: &mut Rng) -> String {
    let part = random.usize(..draft.parts.len());
    let tensors = &mut draft.parts[part].tensors;
    if tensors.is_empty() {
        return "nothing".into();
    }
    let (one, other) = (random.usize(..tensors.len()), random.usize(..tensors.len()));
    let name = tensors[one].desc.name.clone();
    match random.u8(0..4) {
        0 => tensors[one].desc.name = name.replace("weight", "bias"),
        1 => tensors[one].desc.name = name.replace("blk.0", "blk.1"),
        2 => tensors[one].desc.name = format!("{name}x"),
        _ => {
            let other_name = std::mem::replace(&mut tensors[other].desc.name, name.clone());
            tensors[one].desc.name = other_name;
        }
    }
    format!("{name} is called {}", tensors[one].desc.name)
}

fn tensor_type(draft: &mut Draft, random: &mut Rng) -> String {
    let part = random.usize(..draft.parts.len());
    let Some(tensor) = random.choice(&mut draft.parts[part].tensors) else {
        return "nothing".into();
    };
    tensor.desc.ty = random.choice(GgmlType::ALL.iter().copied()).unwrap_or(GgmlType::F32);
    format!("{} of type {}", tensor.desc.name, tensor.desc.ty)
}

fn drop_tensor(draft: &mut Draft, random: &mut Rng) -> String {
    let part = random.usize(..draft.parts.len());
    let tensors = &mut draft.parts[part].tensors;
    if tensors.is_empty() {
        return "nothing".into();
    }
    let gone = tensors.remove(random.usize(..tensors.len()));
    format!("without {}", gone.desc.name)
}

/// What a part says of its place.
fn split(draft: &mut Draft, random: &mut Rng) -> String {
    let part = random.usize(..draft.parts.len());
    let key = random.choice(["split.no", "split.count", "split.tensors.count"]).unwrap_or_default();
    let value = match random.bool() {
        true => (values::integer(random) as u16).into(),
        false => values::any(random),
    };
    format!("part {part}: {}", set(&mut draft.parts[part].metadata, key, value))
}
