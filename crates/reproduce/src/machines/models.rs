//! Three public models by their true shapes: what their GGUF files hold, and routing fitted to
//! recorded traces. Figures only.

use motley_sim::shape::Dense;

pub use crate::compared::model::{Model, RoutingStatistics};

/// The three.
pub const MODELS: [Model; 3] = [
    // 48 layers, 2048 wide, 32 query and 4 key heads of 128: 18.9 M weights of attention. Bytes
    // are those the recorded trace names for its Q4_K_M file: 4.84 bits a weight over all layers,
    // since half of the down matrices are Q6_K. Head of 151 936 rows in Q6_K.
    Model {
        name: "Qwen3-30B-A3B Q4_K_M",
        layers: 48,
        experts: 128,
        k: 8,
        hidden: 2048,
        width: 768,
        expert_bytes: 2_856_960,
        layer: Dense { weights: 19.1e6, bytes: 11.8e6 },
        ends: Dense { weights: 311.2e6, bytes: 255.3e6 },
        routing: RoutingStatistics {
            fitted_to: "Qwen3-30B-A3B, 156 tokens",
            zipf_skew: 0.70,
            repeat: 0.21,
            recall: 0.62,
            layer_correlation: 1.0,
            weight_tilt: 0.27,
        },
    },
    // 36 layers, 2880 wide, 64 query and 8 key heads of 64: 26.5 M weights of attention, Q8_0 in
    // the published MXFP4 file. An expert is three 2880 x 2880 matrices of 4.25 bits. Head of
    // 201 088 rows in Q8_0.
    Model {
        name: "gpt-oss-120b MXFP4",
        layers: 36,
        experts: 128,
        k: 4,
        hidden: 2880,
        width: 2880,
        expert_bytes: 13_219_200,
        layer: Dense { weights: 26.9e6, bytes: 29.7e6 },
        ends: Dense { weights: 579.1e6, bytes: 615.3e6 },
        routing: RoutingStatistics {
            fitted_to: "gpt-oss-120b, 149 tokens",
            zipf_skew: 0.80,
            repeat: 0.11,
            recall: 0.38,
            layer_correlation: 0.9,
            weight_tilt: 0.46,
        },
    },
    // 27 layers, the first without experts; 2048 wide; MLA with rank 512: 13.8 M weights; two
    // shared experts of 8.65 M. 1408 is no multiple of 256, so down is Q5_0 or Q8_0 and an expert
    // has 5.33 bits a weight. Head of 102 400 rows in Q6_K, first layer 81 M weights.
    Model {
        name: "DeepSeek-V2-Lite Q4_K_M",
        layers: 26,
        experts: 64,
        k: 6,
        hidden: 2048,
        width: 1408,
        expert_bytes: 5_767_168,
        layer: Dense { weights: 31.2e6, bytes: 19.6e6 },
        ends: Dense { weights: 290.7e6, bytes: 221.0e6 },
        routing: RoutingStatistics {
            fitted_to: "OLMoE-1B-7B, 299 tokens (64 experts as here)",
            zipf_skew: 0.60,
            repeat: 0.05,
            recall: 0.62,
            layer_correlation: 1.0,
            weight_tilt: 0.0,
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_add_up_to_the_published_files() {
        // GB of the files less the token embedding, which stays in RAM and is not read whole.
        let files = [18.56 - 0.17, 63.39 - 0.62, 10.36 - 0.12];
        for (model, file_gb) in MODELS.iter().zip(files) {
            let shape = model.shape();
            let gb = (shape.routed_bytes() + shape.dense_bytes()) as f64 / 1e9;
            assert!((gb / file_gb - 1.0).abs() < 0.02, "{}: {gb} of {file_gb}", model.name);
        }
    }
}
