//! The numbers a model is built from, and named sets of them.

use super::Arch;
use anyhow::{Context, Result, ensure};
use std::fmt;
use std::str::FromStr;

/// Dimensions shared by all architectures; each derives the rest (ranks, groups, shared experts).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Transformer blocks.
    pub layers: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Neurons of one routed expert.
    pub ff: u64,
    /// Routed experts per layer.
    pub experts: u64,
    /// Experts chosen per token.
    pub topk: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of one head.
    pub head_dim: u64,
}

/// llama.cpp's `LLAMA_MAX_EXPERTS` and `LLAMA_MAX_LAYERS`.
const EXPERTS_MAX: u64 = 512;
pub(super) const LAYERS_MAX: u64 = 512;

impl Shape {
    /// Refuses numbers that no architecture takes.
    pub fn check(&self) -> Result<()> {
        let Self { layers, hidden, ff, experts, topk, heads, kv_heads, head_dim } = *self;
        ensure!((1..=LAYERS_MAX).contains(&layers), "--layers takes 1 to {LAYERS_MAX}");
        ensure!((2..=EXPERTS_MAX).contains(&experts), "--experts takes 2 to {EXPERTS_MAX}");
        ensure!((1..=experts).contains(&topk), "--topk takes 1 to --experts ({experts})");
        for (option, value) in [("--hidden", hidden), ("--ff", ff), ("--head-dim", head_dim)] {
            let fits = value > 0 && value.is_multiple_of(32) && value <= 1 << 16;
            ensure!(fits, "{option} {value} must be a multiple of 32 up to 65536");
        }
        ensure!((1..=1024).contains(&heads), "--heads takes 1 to 1024");
        let divides = kv_heads > 0 && heads.is_multiple_of(kv_heads);
        ensure!(divides, "--kv-heads {kv_heads} must divide --heads {heads}");
        Ok(())
    }
}

/// A named shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Some 20 MB: three layers, 16 experts, top-4; every width a multiple of 256.
    Test(Arch),
    /// 2.2 GB at Q4_0: six layers of the shape of Qwen3-30B-A3B.
    Qwen3moe2g,
    /// 8.5 GB at Q4_0: twenty-four layers of it.
    Qwen3moe8g,
}

impl Preset {
    /// Every preset.
    pub fn all() -> impl Iterator<Item = Self> {
        let tests = Arch::ALL.iter().map(|arch| Self::Test(*arch));
        tests.chain([Self::Qwen3moe2g, Self::Qwen3moe8g])
    }

    /// The architecture.
    pub fn arch(self) -> Arch {
        match self {
            Self::Test(arch) => arch,
            Self::Qwen3moe2g | Self::Qwen3moe8g => Arch::Qwen3moe,
        }
    }

    /// The numbers.
    pub fn shape(self) -> Shape {
        let qwen3moe = |layers| Shape {
            layers,
            hidden: 2048,
            ff: 768,
            experts: 128,
            topk: 8,
            heads: 32,
            kv_heads: 4,
            head_dim: 128,
        };
        match self {
            Self::Test(arch) => Shape {
                layers: 3,
                hidden: 256,
                ff: 256,
                experts: 16,
                topk: 4,
                heads: 4,
                kv_heads: if arch == Arch::Olmoe { 4 } else { 2 },
                head_dim: 64,
            },
            Self::Qwen3moe2g => qwen3moe(6),
            Self::Qwen3moe8g => qwen3moe(24),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test(arch) => write!(f, "test-{arch}"),
            Self::Qwen3moe2g => f.write_str("qwen3moe-2g"),
            Self::Qwen3moe8g => f.write_str("qwen3moe-8g"),
        }
    }
}

impl FromStr for Preset {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let names: Vec<String> = Self::all().map(|preset| preset.to_string()).collect();
        Self::all()
            .find(|preset| preset.to_string() == text)
            .with_context(|| format!("no preset `{text}`; there are {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_found_by_its_name() {
        for preset in Preset::all() {
            preset.shape().check().expect("a sound shape");
            crate::synth::arch::check(preset.arch(), &preset.shape())
                .expect("a shape its architecture takes");
            assert_eq!(preset.to_string().parse::<Preset>().expect("its own name"), preset);
        }
        assert!("test-gpt".parse::<Preset>().is_err());
    }

    #[test]
    fn wrong_numbers_are_refused_by_the_option_to_change() {
        let good = Preset::Qwen3moe2g.shape();
        let cases = [
            (Shape { layers: 0, ..good }, "--layers"),
            (Shape { hidden: 100, ..good }, "--hidden"),
            (Shape { ff: 0, ..good }, "--ff"),
            (Shape { experts: 1, ..good }, "--experts"),
            (Shape { topk: 129, ..good }, "--topk"),
            (Shape { kv_heads: 5, ..good }, "--kv-heads"),
            (Shape { head_dim: 31, ..good }, "--head-dim"),
        ];
        for (shape, option) in cases {
            let error = shape.check().expect_err(option).to_string();
            assert!(error.contains(option), "{error}");
        }
    }
}
