//! Three large public models by their true shapes, two of them at four and at two bits a weight.
//! Figures only.

use motley_sim::shape::Dense;

use crate::compared::model::{Model, RoutingStatistics};
use crate::machines::models::MODELS as MACHINES_MODELS;

/// Bits of an expert's weight in Q4_K_M, over all layers: half of the down matrices are Q6_K.
const FOUR: f64 = 4.84;
/// Bits of an expert's weight in Q2_K: gate and up at 2.625, down in Q3_K at 3.4375.
const TWO: f64 = 2.896;
/// Bits of other weights in Q2_K: attention's values and output are kept finer.
const TWO_DENSE: f64 = 3.1;
/// Bits of the output head in both: Q6_K.
const HEAD: f64 = 6.5625;

/// What it takes to write a model down at several sizes.
struct Shape {
    layers: u16,
    experts: u16,
    k: u16,
    hidden: u32,
    width: u32,
    /// Attention, router and shared experts of a layer; layers without experts; the head.
    layer_m: f64,
    first_m: f64,
    head_m: f64,
    routing: RoutingStatistics,
}

impl Shape {
    const fn at(&self, name: &'static str, expert_bits: f64, dense_bits: f64) -> Model {
        let weights = 3.0 * self.hidden as f64 * self.width as f64;
        Model {
            name,
            layers: self.layers,
            experts: self.experts,
            k: self.k,
            hidden: self.hidden,
            width: self.width,
            expert_bytes: (weights * expert_bits / 8.0) as u64,
            layer: Dense {
                weights: self.layer_m * 1e6,
                bytes: self.layer_m * 1e6 * dense_bits / 8.0,
            },
            ends: Dense {
                weights: (self.first_m + self.head_m) * 1e6,
                bytes: (self.first_m * dense_bits + self.head_m * HEAD) * 1e6 / 8.0,
            },
            routing: self.routing,
        }
    }
}

/// 94 layers, 4096 wide, 64 query and 4 key heads of 128: 71.3 M weights of attention. Head of
/// 151 936 rows. No trace of it was recorded: its smaller sister's statistics.
const QWEN: Shape = Shape {
    layers: 94,
    experts: 128,
    k: 8,
    hidden: 4096,
    width: 1536,
    layer_m: 71.8,
    first_m: 0.0,
    head_m: 622.3,
    routing: MACHINES_MODELS[0].routing,
};

/// 61 layers, three without experts; 7168 wide; MLA with ranks 1536 and 512: 187 M weights; one
/// shared expert of 44 M. Head of 129 280 rows. No trace of it was recorded: those of Kimi, whose
/// layers are built the same way.
const DEEPSEEK: Shape = Shape {
    layers: 58,
    experts: 256,
    k: 8,
    hidden: 7168,
    width: 2048,
    layer_m: 232.9,
    first_m: 1750.0,
    head_m: 926.7,
    routing: RoutingStatistics {
        fitted_to: "Kimi, 300 tokens",
        zipf_skew: 0.85,
        repeat: 0.18,
        recall: 0.62,
        layer_correlation: 0.9,
        weight_tilt: 0.0,
    },
};

/// gpt-oss-120b exists at four bits only: its experts were trained in MXFP4.
pub const MODELS: [Model; 5] = [
    MACHINES_MODELS[1],
    QWEN.at("Qwen3-235B-A22B Q4_K_M", FOUR, FOUR),
    QWEN.at("Qwen3-235B-A22B Q2_K", TWO, TWO_DENSE),
    DEEPSEEK.at("DeepSeek-V3 Q4_K_M", FOUR, FOUR),
    DEEPSEEK.at("DeepSeek-V3 Q2_K", TWO, TWO_DENSE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_add_up_to_the_published_files() {
        // GB of the files less the token embedding, which stays in RAM and is not read whole.
        let files = [63.39 - 0.62, 142.2 - 0.35, 85.7 - 0.2, 404.4 - 0.52, 244.1 - 0.3];
        for (model, file_gb) in MODELS.iter().zip(files) {
            let shape = model.shape();
            let gb = (shape.routed_bytes() + shape.dense_bytes()) as f64 / 1e9;
            assert!((gb / file_gb - 1.0).abs() < 0.02, "{}: {gb} of {file_gb}", model.name);
        }
    }
}
