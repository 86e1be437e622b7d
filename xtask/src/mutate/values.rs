//! Odd values: numbers at the edges of what programs expect, texts no tokenizer likes, and one type
//! in the place of another.

use fastrand::Rng;
use motley_model::gguf::{GgufString, MetaArray, MetaValue, StringArray};

/// Numbers at edges.
const INTEGERS: [u64; 20] = [
    0,
    1,
    2,
    3,
    5,
    7,
    31,
    63,
    65,
    127,
    255,
    256,
    511,
    1023,
    4095,
    4096,
    65535,
    0x7fff_ffff,
    0xffff_ffff,
    u64::MAX,
];

/// Real numbers nobody means.
const REALS: [f32; 9] =
    [0.0, -0.0, -1.0, 1e-38, 1e38, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5];

/// Longest text put in: more than any token or name, less than the reader's limit.
const LONG_TEXT_BYTES: usize = 100_000;

/// A number at an edge.
pub(super) fn integer(random: &mut Rng) -> u64 {
    random.choice(INTEGERS).unwrap_or(0)
}

/// A real number nobody means.
pub(super) fn real(random: &mut Rng) -> f32 {
    random.choice(REALS).unwrap_or(0.0)
}

/// Up to `most` bytes, any.
pub(super) fn bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    (0..random.usize(..=most)).map(|_| random.u8(..)).collect()
}

/// A text nobody means.
pub(super) fn text(random: &mut Rng) -> Vec<u8> {
    match random.u8(0..8) {
        0 => vec![],
        1 => vec![b'A'; LONG_TEXT_BYTES],
        2 => vec![0xff, 0xfe, 0xc0],
        3 => b"a\0b".to_vec(),
        4 => b"\x1b]0;title\x07\x1b[2J".to_vec(),
        5 => b"%s%n%d".to_vec(),
        6 => b"([*".repeat(200),
        _ => bytes(random, 64),
    }
}

/// `value` with another number, text or length, in the same type.
pub(super) fn same_type(value: &MetaValue, random: &mut Rng) -> MetaValue {
    let number = integer(random);
    match value {
        MetaValue::U8(_) => (number as u8).into(),
        MetaValue::I8(_) => (number as i8).into(),
        MetaValue::U16(_) => (number as u16).into(),
        MetaValue::I16(_) => (number as i16).into(),
        MetaValue::U32(_) => (number as u32).into(),
        MetaValue::I32(_) => (number as i32).into(),
        MetaValue::U64(_) => number.into(),
        MetaValue::I64(_) => (number as i64).into(),
        MetaValue::F32(_) => real(random).into(),
        MetaValue::F64(_) => f64::from(real(random)).into(),
        MetaValue::Bool(value) => (!value).into(),
        MetaValue::String(_) => MetaValue::String(GgufString::from(text(random))),
        MetaValue::Array(array) => MetaValue::Array(same_array(array, random)),
    }
}

/// A value of any type.
pub(super) fn any(random: &mut Rng) -> MetaValue {
    let number = integer(random);
    match random.u8(0..10) {
        0 => (number as u32).into(),
        1 => (number as i32).into(),
        2 => number.into(),
        3 => real(random).into(),
        4 => random.bool().into(),
        5 => MetaValue::String(GgufString::from(text(random))),
        6 => vec![number as u32; random.usize(0..5)].into(),
        7 => vec![real(random); random.usize(0..5)].into(),
        8 => (number as u8).into(),
        _ => (0..random.usize(0..5)).map(|_| text(random)).collect::<StringArray>().into(),
    }
}

/// Emptied, cut, lengthened or with other elements.
fn same_array(array: &MetaArray, random: &mut Rng) -> MetaArray {
    let number = integer(random);
    match array {
        MetaArray::U8(values) => MetaArray::U8(resized(values, number as u8, random)),
        MetaArray::I8(values) => MetaArray::I8(resized(values, number as i8, random)),
        MetaArray::U16(values) => MetaArray::U16(resized(values, number as u16, random)),
        MetaArray::I16(values) => MetaArray::I16(resized(values, number as i16, random)),
        MetaArray::U32(values) => MetaArray::U32(resized(values, number as u32, random)),
        MetaArray::I32(values) => MetaArray::I32(resized(values, number as i32, random)),
        MetaArray::U64(values) => MetaArray::U64(resized(values, number, random)),
        MetaArray::I64(values) => MetaArray::I64(resized(values, number as i64, random)),
        MetaArray::F32(values) => MetaArray::F32(resized(values, real(random), random)),
        MetaArray::F64(values) => MetaArray::F64(resized(values, real(random).into(), random)),
        MetaArray::Bool(values) => MetaArray::Bool(resized(values, random.bool(), random)),
        MetaArray::String(strings) => {
            let strings: Vec<_> = strings.iter().map(<[u8]>::to_vec).collect();
            let odd = text(random);
            MetaArray::String(resized(&strings, odd, random).into_iter().collect())
        }
    }
}

fn resized<T: Clone>(values: &[T], odd: T, random: &mut Rng) -> Vec<T> {
    let mut values = values.to_vec();
    match random.u8(0..6) {
        0 => values.clear(),
        1 => values.truncate(1),
        2 => values.truncate(values.len() / 2),
        3 => values.push(odd),
        4 => values.fill(odd),
        _ => {
            if let Some(one) = random.choice(&mut values) {
                *one = odd;
            }
        }
    }
    values
}
