//! Plain dequantisers for tests, written from the formulas of ggml's `dequantize_row_*`.
//!
//! Slow and simple on purpose: they judge what the fast writers of this crate produce.

use half::{bf16, f16};
use motley_model::gguf::GgmlType;

/// Every value of whole blocks of `ty`; panics for types no test needs.
pub(crate) fn dequantise(ty: GgmlType, bytes: &[u8]) -> Vec<f32> {
    let block: fn(&[u8]) -> Vec<f32> = match ty {
        GgmlType::F32 => |b| vec![f32::from_le_bytes([b[0], b[1], b[2], b[3]])],
        GgmlType::F16 => |b| vec![half(b, 0)],
        GgmlType::BF16 => |b| vec![bf16::from_le_bytes([b[0], b[1]]).to_f32()],
        GgmlType::Q4_0 => |b| nibbles(&b[2..], |q| (q as f32 - 8.0) * half(b, 0)),
        GgmlType::Q4_1 => |b| nibbles(&b[4..], |q| q as f32 * half(b, 0) + half(b, 2)),
        GgmlType::Q5_0 => |b| fives(&b[2..], |q| (q as f32 - 16.0) * half(b, 0)),
        GgmlType::Q5_1 => |b| fives(&b[4..], |q| q as f32 * half(b, 0) + half(b, 2)),
        GgmlType::Q8_0 => |b| b[2..].iter().map(|q| f32::from(*q as i8) * half(b, 0)).collect(),
        GgmlType::IQ4_NL => |b| nibbles(&b[2..], |q| IQ4_NL[q] * half(b, 0)),
        GgmlType::MXFP4 => |b| {
            nibbles(&b[1..], |q| {
                let sign = if q < 8 { 1.0 } else { -1.0 };
                sign * MXFP4[q % 8] * 2f32.powi(i32::from(b[0]) - 128)
            })
        },
        GgmlType::Q2_K => q2_k,
        GgmlType::Q3_K => q3_k,
        GgmlType::Q4_K => |b| q45_k(b, |sub, i| nibble_of(&b[16..], sub, i)),
        GgmlType::Q5_K => |b| {
            q45_k(b, |sub, i| nibble_of(&b[48..], sub, i) + 16 * usize::from(b[16 + i] >> sub & 1))
        },
        GgmlType::Q6_K => q6_k,
        other => panic!("no test dequantiser for {other}"),
    };
    bytes.chunks_exact(ty.block_bytes() as usize).flat_map(block).collect()
}

const IQ4_NL: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];
const MXFP4: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];

fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// 32 quants: low nibbles of 16 bytes, then their high nibbles.
fn nibbles(quants: &[u8], value: impl Fn(usize) -> f32) -> Vec<f32> {
    let low = quants.iter().map(|q| usize::from(q & 15));
    low.chain(quants.iter().map(|q| usize::from(q >> 4))).map(value).collect()
}

/// 32 quants of five bits: four bytes of high bits, then nibbles.
fn fives(quants: &[u8], value: impl Fn(usize) -> f32) -> Vec<f32> {
    let high = u32::from_le_bytes([quants[0], quants[1], quants[2], quants[3]]);
    let mut index = 0;
    let low = nibbles(&quants[4..], |q| q as f32);
    low.into_iter()
        .map(|q| {
            index += 1;
            value(q as usize + 16 * (high >> (index - 1) & 1) as usize)
        })
        .collect()
}

/// Quant `i` of 32-wide sub-block `sub`: pairs of sub-blocks share 32 bytes.
fn nibble_of(quants: &[u8], sub: usize, i: usize) -> usize {
    usize::from(quants[sub / 2 * 32 + i] >> (4 * (sub % 2)) & 15)
}

fn q45_k(b: &[u8], quant: impl Fn(usize, usize) -> usize) -> Vec<f32> {
    let s = |at: usize| usize::from(b[4 + at]);
    let scale_min = |j: usize| match j {
        0..4 => (s(j) & 63, s(j + 4) & 63),
        _ => (s(j + 4) & 15 | s(j - 4) >> 6 << 4, s(j + 4) >> 4 | s(j) >> 6 << 4),
    };
    let value = |at: usize| {
        let (scale, min) = scale_min(at / 32);
        half(b, 0) * scale as f32 * quant(at / 32, at % 32) as f32 - half(b, 2) * min as f32
    };
    (0..256).map(value).collect()
}

/// Two bits of quant `at`: halves of 128, four shifts, 32 bytes each.
fn pair_of(quants: &[u8], at: usize) -> usize {
    usize::from(quants[at / 128 * 32 + at % 32] >> (2 * (at % 128 / 32)) & 3)
}

fn q2_k(b: &[u8]) -> Vec<f32> {
    let value = |at: usize| {
        let scale = b[at / 16];
        let quant = pair_of(&b[16..], at) as f32;
        half(b, 80) * f32::from(scale & 15) * quant - half(b, 82) * f32::from(scale >> 4)
    };
    (0..256).map(value).collect()
}

fn q3_k(b: &[u8]) -> Vec<f32> {
    let scale = |j: usize| {
        let low = b[96 + j % 8] >> (4 * (j / 8)) & 15;
        let high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
        f32::from(low | high << 4) - 32.0
    };
    let value = |at: usize| {
        let high = usize::from(b[at % 32] >> (at / 32) & 1);
        half(b, 108) * scale(at / 16) * (pair_of(&b[32..], at) as f32 + 4.0 * high as f32 - 4.0)
    };
    (0..256).map(value).collect()
}

fn q6_k(b: &[u8]) -> Vec<f32> {
    let value = |at: usize| {
        let (part, quarter, l) = (at / 128, at % 128 / 32, at % 32);
        let low = b[part * 64 + quarter % 2 * 32 + l] >> (4 * (quarter / 2)) & 15;
        let high = b[128 + part * 32 + l] >> (2 * quarter) & 3;
        let scale = b[192 + at / 16] as i8;
        half(b, 208) * f32::from(scale) * (f32::from(low | high << 4) - 32.0)
    };
    (0..256).map(value).collect()
}
