//! Random tensor bytes with zero mean (or nearly) and a wanted standard deviation, at GB/s.
//!
//! Quantised blocks get random quants under constant scales: only the block's scale bytes are
//! written, everything else is the raw output of the generator. Layouts: `ggml-common.h`.
//! Types with one more level below zero than above (-8..=7) lean down, and a matrix that leans
//! multiplies the mean of its input, layer after layer, until all tokens look alike to the
//! router. So every block's scale has a random sign.
//! Float types draw from a table of normal quantiles, 12 random bits each.

use half::{bf16, f16};
use motley_model::gguf::GgmlType;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Entries of the quantile table.
const QUANTILES: usize = 1 << 12;

/// A generator for one named thing: independent of all others and of their order.
pub fn seeded(seed: u64, name: &str) -> Xoshiro256PlusPlus {
    // FNV-1a, fixed for all times, so that files stay the same.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The normal quantile of `p`, by Tukey's lambda distribution; within 0.06 for p in 0.001..0.999.
pub fn normal_quantile(p: f64) -> f64 {
    4.91 * (p.powf(0.14) - (1.0 - p).powf(0.14))
}

/// Whether [`Filler::new`] knows this type.
pub fn can_fill(ty: GgmlType) -> bool {
    Filler::new(ty, 1.0).is_some()
}

/// Fills buffers with one type's random blocks.
#[derive(Debug, Clone)]
pub struct Filler {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Random bytes, then in each block either set of bytes at their offsets, by a random bit.
    Blocks { block_bytes: usize, plus: Vec<Fixed>, minus: Vec<Fixed> },
    /// Elements of `width` bytes out of a table of [`QUANTILES`].
    Table { width: usize, elements: Vec<u8> },
}

/// Bytes of a block that are not random, and their offset.
type Fixed = (usize, Vec<u8>);

impl Filler {
    /// A filler for values of standard deviation `std`; none for types without a generator.
    pub fn new(ty: GgmlType, std: f32) -> Option<Self> {
        let kind = match ty {
            GgmlType::F32 => table(std, |value| value.to_le_bytes().to_vec()),
            GgmlType::F16 => table(std, |value| f16::from_f32(value).to_le_bytes().to_vec()),
            GgmlType::BF16 => table(std, |value| bf16::from_f32(value).to_le_bytes().to_vec()),
            _ => {
                let (plus, minus) = (fixed_bytes(ty, std)?, fixed_bytes(ty, -std)?);
                Kind::Blocks { block_bytes: ty.block_bytes() as usize, plus, minus }
            }
        };
        Some(Self { kind })
    }

    /// Overwrites `buffer`, which is whole blocks, with the next values of `rng`.
    pub fn fill(&self, rng: &mut Xoshiro256PlusPlus, buffer: &mut [u8]) {
        match &self.kind {
            Kind::Blocks { block_bytes, plus, minus } => {
                rng.fill_bytes(buffer);
                for block in buffer.chunks_exact_mut(*block_bytes) {
                    // A bit of a byte that is about to be overwritten.
                    let sign = block[plus[0].0] & 1;
                    put_fixed(block, if sign == 0 { plus } else { minus });
                }
            }
            Kind::Table { width, elements } => fill_from_table(rng, buffer, *width, elements),
        }
    }
}

fn put_fixed(block: &mut [u8], fixed: &[Fixed]) {
    for (at, bytes) in fixed {
        block[*at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn table(std: f32, encode: impl Fn(f32) -> Vec<u8>) -> Kind {
    let quantile = |index: usize| normal_quantile((index as f64 + 0.5) / QUANTILES as f64);
    let elements: Vec<u8> =
        (0..QUANTILES).flat_map(|index| encode(quantile(index) as f32 * std)).collect();
    Kind::Table { width: elements.len() / QUANTILES, elements }
}

/// Five elements per 64 random bits.
fn fill_from_table(rng: &mut Xoshiro256PlusPlus, buffer: &mut [u8], width: usize, elements: &[u8]) {
    for group in buffer.chunks_mut(5 * width) {
        let mut bits = rng.next_u64();
        for element in group.chunks_exact_mut(width) {
            let at = (bits as usize % QUANTILES) * width;
            element.copy_from_slice(&elements[at..at + width]);
            bits >>= 12;
        }
    }
}

/// Standard deviation of a quant drawn evenly from `levels` neighbouring integers.
fn even_std(levels: f32) -> f32 {
    ((levels * levels - 1.0) / 12.0).sqrt()
}

fn half_bytes(value: f32) -> Vec<u8> {
    f16::from_f32(value).to_le_bytes().to_vec()
}

/// Scale `d` and, beside it, the minimum that moves the mean to zero: `m = factor * d`.
fn scale_and_min(d: f32, factor: f32) -> Vec<u8> {
    [half_bytes(d), half_bytes(d * factor)].concat()
}

/// The bytes of a block that are not random; a negative `std` mirrors the block at zero.
fn fixed_bytes(ty: GgmlType, std: f32) -> Option<Vec<Fixed>> {
    // Inner scales of K-quants, as the integer that all sub-blocks share.
    const K_SCALE: f32 = 32.0;
    let d16 = std / even_std(16.0);
    let d32 = std / even_std(32.0);
    Some(match ty {
        GgmlType::Q4_0 => vec![(0, half_bytes(d16))],
        GgmlType::Q4_1 => vec![(0, scale_and_min(d16, -7.5))],
        GgmlType::Q5_0 => vec![(0, half_bytes(d32))],
        GgmlType::Q5_1 => vec![(0, scale_and_min(d32, -15.5))],
        GgmlType::Q8_0 => vec![(0, half_bytes(std / even_std(256.0)))],
        GgmlType::IQ4_NL => vec![(0, half_bytes(std / table_std(&IQ4_NL_VALUES)))],
        GgmlType::MXFP4 => vec![(0, vec![mxfp4_exponent(std.abs())])],
        // Scale 8 and minimum 8 in the two nibbles; weight = 8 d q - 8 dmin.
        GgmlType::Q2_K => {
            vec![(0, vec![0x88; 16]), (80, scale_and_min(std / (8.0 * even_std(4.0)), 1.5))]
        }
        // Scale 8 as 40 - 32: low nibbles in the first eight bytes, high pairs in the last four.
        GgmlType::Q3_K => {
            let scales = [vec![0x88; 8], vec![0xaa; 4]].concat();
            vec![(96, scales), (108, half_bytes(std / (8.0 * even_std(8.0))))]
        }
        GgmlType::Q4_K => vec![(0, scale_and_min(d16 / K_SCALE, 7.5)), (4, k_scales())],
        GgmlType::Q5_K => vec![(0, scale_and_min(d32 / K_SCALE, 15.5)), (4, k_scales())],
        GgmlType::Q6_K => {
            let d = std / (K_SCALE * even_std(64.0));
            vec![(192, [vec![K_SCALE as u8; 16], half_bytes(d)].concat())]
        }
        _ => return None,
    })
}

/// Eight scales and eight minima of 32 in the 6-bit packing of Q4_K and Q5_K.
fn k_scales() -> Vec<u8> {
    [vec![0xa0; 8], vec![0x00; 4]].concat()
}

const IQ4_NL_VALUES: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

fn table_std(values: &[f32]) -> f32 {
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>();
    (square / values.len() as f32).sqrt()
}

/// The power of two nearest to the wanted scale: weight = value * 2^(e - 128).
fn mxfp4_exponent(std: f32) -> u8 {
    const VALUES: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];
    let spread = (VALUES.iter().map(|v| v * v).sum::<f32>() / 8.0).sqrt();
    (128.0 + (std / spread).log2().round()).clamp(1.0, 254.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dequant::dequantise;

    const STD: f32 = 1.0 / 45.0;

    fn sample(ty: GgmlType) -> Vec<f32> {
        let filler = Filler::new(ty, STD).expect("a type with a generator");
        let mut buffer = vec![0; ty.row_bytes(1 << 16).expect("whole blocks") as usize];
        filler.fill(&mut seeded(1, "sample"), &mut buffer);
        dequantise(ty, &buffer)
    }

    #[test]
    fn every_type_gets_the_wanted_spread() {
        let types: Vec<GgmlType> =
            GgmlType::ALL.iter().copied().filter(|ty| can_fill(*ty)).collect();
        assert_eq!(types.len(), 15);
        for ty in types {
            let values = sample(ty);
            let count = values.len() as f32;
            let mean = values.iter().sum::<f32>() / count;
            let std = (values.iter().map(|v| v * v).sum::<f32>() / count - mean * mean).sqrt();
            let tolerance = if ty == GgmlType::MXFP4 { 1.42 } else { 1.03 };
            let ratio = std / STD;
            assert!(ratio < tolerance && ratio > 1.0 / tolerance, "{ty}: std {ratio} of wanted");
            assert!(mean.abs() < 0.02 * STD, "{ty}: mean {} of std", mean / STD);
        }
    }

    #[test]
    fn the_quantile_is_close_to_the_normal_one() {
        for (p, z) in [(0.5, 0.0), (0.8413, 1.0), (0.9772, 2.0), (0.99865, 3.0), (0.001, -3.09)] {
            assert!((normal_quantile(p) - z).abs() < 0.06, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn streams_are_named() {
        let draw = |seed, name: &str| seeded(seed, name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
    }
}
