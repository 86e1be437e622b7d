//! What the simulator needs to know of a model: how many experts of what size, and the weights
//! every token reads. Ready models by name, or written out; a GGUF file's shape comes from its reader.

use std::str::FromStr;

use motley_cost::ExpertShape;
use motley_plan::needs::{ModelNeeds, ShapeNumbers};
use thiserror::Error;

/// Bits of a weight by default: four-bit blocks with their scales.
pub const DEFAULT_BITS: f64 = 4.5;

/// A model as the simulator sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    pub name: String,
    /// Layers with routed experts.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
    /// One routed expert.
    pub expert: ExpertShape,
    /// Attention, router and shared experts of one layer.
    pub dense_layer: Dense,
    /// Output head and layers without experts: once per pass.
    pub ends: Dense,
}

/// Weights that every token reads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dense {
    pub weights: f64,
    /// Their stored size.
    pub bytes: f64,
}

impl Dense {
    fn new(weights_m: f64, bits: f64) -> Self {
        let weights = weights_m * 1e6;
        Self { weights, bytes: weights * bits / 8.0 }
    }
}

impl ModelShape {
    /// All routed experts.
    pub fn routed_bytes(&self) -> u64 {
        u64::from(self.layers) * u64::from(self.experts) * self.expert.bytes
    }

    /// As a decision counts it. Keys and values of a token are taken as a quarter of a hidden row
    /// each, in 16 bits: what models with grouped queries have.
    pub fn needs(&self) -> ModelNeeds {
        let layers = f64::from(self.layers);
        ModelNeeds::of_shape(&ShapeNumbers {
            name: self.name.clone(),
            layers: self.layers.into(),
            experts: self.experts.into(),
            used: self.k.into(),
            hidden: self.expert.hidden.into(),
            expert_width: self.expert.intermediate.into(),
            expert_bytes: self.expert.bytes,
            dense: (self.dense_layer.bytes * layers, self.dense_layer.weights * layers),
            head: (self.ends.bytes, self.ends.weights),
            kv_bytes_per_token: u64::from(self.layers) * u64::from(self.expert.hidden),
        })
    }

    /// Everything else.
    pub fn dense_bytes(&self) -> u64 {
        (self.dense_layer.bytes * f64::from(self.layers) + self.ends.bytes) as u64
    }

    /// A ready model by name, or `LAYERSxEXPERTSxK:HIDDENxWIDTH`, at `bits` per weight.
    pub fn find(name: &str, bits: f64) -> Result<Self, UnknownShape> {
        let ready = READY.iter().find(|ready| ready.name == name);
        let written = || Numbers::from_str(name).ok();
        let unknown = || UnknownShape { name: name.to_owned() };
        let numbers = ready.copied().or_else(written).ok_or_else(unknown)?;
        Ok(numbers.shape(if ready.is_some() { name } else { "a model" }, bits))
    }

    /// The ready model with that many layers and experts, such as a trace was recorded from.
    pub fn with_grid(layers: u16, experts: u16, bits: f64) -> Option<Self> {
        let found = READY.iter().find(|n| (n.layers, n.experts) == (layers, experts))?;
        Some(found.shape(found.name, bits))
    }
}

/// Names of the ready models.
pub fn ready_names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|numbers| numbers.name)
}

/// A name that is neither ready nor a shape.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no model shape \"{name}\"; ready ones: {}; or write LAYERSxEXPERTSxK:HIDDENxWIDTH, such as \
     48x128x8:2048x768",
    ready_names().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownShape {
    pub name: String,
}

#[derive(Debug, Clone, Copy)]
struct Numbers {
    name: &'static str,
    layers: u16,
    experts: u16,
    k: u16,
    hidden: u32,
    width: u32,
    /// Attention and shared experts of one layer, millions of weights.
    layer_m: f64,
    /// Output head and leading dense layers, millions of weights.
    ends_m: f64,
}

impl Numbers {
    fn shape(&self, name: &str, bits: f64) -> ModelShape {
        ModelShape {
            name: name.to_owned(),
            layers: self.layers,
            experts: self.experts,
            k: self.k,
            expert: ExpertShape::new(self.hidden, self.width, bits),
            dense_layer: Dense::new(self.layer_m, bits),
            ends: Dense::new(self.ends_m, bits),
        }
    }
}

/// Widths and counts of the models' public configurations; attention is counted from them.
const READY: &[Numbers] = &[
    numbers("qwen3-30b-a3b", [48, 128, 8], [2048, 768], [18.9, 311.0]),
    numbers("qwen3-235b-a22b", [94, 128, 8], [4096, 1536], [71.3, 622.0]),
    numbers("gpt-oss-120b", [36, 128, 4], [2880, 2880], [26.5, 579.0]),
    numbers("gpt-oss-20b", [24, 32, 4], [2880, 2880], [26.5, 579.0]),
    numbers("mixtral-8x7b", [32, 8, 2], [4096, 14336], [41.9, 131.0]),
    numbers("olmoe-1b-7b", [16, 64, 8], [2048, 1024], [16.8, 103.0]),
    numbers("deepseek-v2-lite", [26, 64, 6], [2048, 1408], [31.2, 290.7]),
    numbers("deepseek-v3", [58, 256, 8], [7168, 2048], [231.0, 2676.0]),
];

const fn numbers(
    name: &'static str,
    [layers, experts, k]: [u16; 3],
    [hidden, width]: [u32; 2],
    [layer_m, ends_m]: [f64; 2],
) -> Numbers {
    Numbers { name, layers, experts, k, hidden, width, layer_m, ends_m }
}

impl FromStr for Numbers {
    type Err = ();

    /// Attention of a model nobody named is four square matrices; its vocabulary 128 thousand.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (counts, widths) = text.split_once(':').ok_or(())?;
        let [layers, experts, k] = parts::<u16, 3>(counts).ok_or(())?;
        let [hidden, width] = parts::<u32, 2>(widths).ok_or(())?;
        let positive = layers > 0 && experts > 0 && k > 0 && hidden > 0 && width > 0;
        if !positive || k > experts || hidden.max(width) > MAX_WIDTH {
            return Err(());
        }
        let layer_m = 4.0 * f64::from(hidden).powi(2) / 1e6;
        let ends_m = 0.128 * f64::from(hidden);
        Ok(numbers("", [layers, experts, k], [hidden, width], [layer_m, ends_m]))
    }
}

/// Widest matrix that is believed.
const MAX_WIDTH: u32 = 1 << 17;

fn parts<T: FromStr, const N: usize>(text: &str) -> Option<[T; N]> {
    let values: Vec<T> = text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    values.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_models_have_the_parameters_of_their_names() {
        let billions = |name: &str| {
            let shape = ModelShape::find(name, 8.0).expect("ready");
            (shape.routed_bytes() + shape.dense_bytes()) as f64 / 1e9
        };
        for (name, expected) in [
            ("qwen3-30b-a3b", 30.2),
            ("qwen3-235b-a22b", 234.5),
            ("gpt-oss-120b", 116.2),
            ("mixtral-8x7b", 46.6),
            ("olmoe-1b-7b", 6.8),
            ("deepseek-v2-lite", 15.5),
            ("deepseek-v3", 670.1),
        ] {
            let found = billions(name);
            assert!((found / expected - 1.0).abs() < 0.01, "{name}: {found}");
        }
    }

    #[test]
    fn a_shape_can_be_written_out() {
        let shape = ModelShape::find("4x16x2:64x32", 8.0).expect("a shape");
        assert_eq!((shape.layers, shape.experts, shape.k), (4, 16, 2));
        assert_eq!(shape.expert.bytes, 3 * 64 * 32);
        for wrong in ["", "4x16:64x32", "4x16x32:64x32", "0x16x2:64x32", "4x16x2:64x32x1"] {
            let error = ModelShape::find(wrong, 8.0).expect_err(wrong).to_string();
            assert!(error.contains("qwen3-30b-a3b") && error.contains("48x128x8"), "{error}");
        }
    }
}
