//! Specs of synthetic models by architecture, split files, refusals, and the trained small model.

mod common;

use std::fs;

use common::{EXPERTS, HIDDEN, LAYERS, Synth, WIDTH};
use motley_model::gguf::GgmlType::{self, F32, MXFP4, Q4_0, Q8_0};
use motley_model::{
    ExpertTensor, FileRange, Gating, Groups, Matrix, ModelError, ModelSpec, OpenError, Role, Sizes,
    SpecError, Summary, TensorPart,
};
use motley_testkit::fixtures::shared;

fn spec(synth: &Synth) -> Result<ModelSpec, SpecError> {
    ModelSpec::from_headers(&[synth.header()])
}

/// Where one matrix of one expert lies, by its slice among the layer's ranges.
fn locate(spec: &ModelSpec, layer: u32, expert: u32, matrix: Matrix) -> Option<FileRange> {
    let mut ranges = spec.layer(layer)?.ranges(expert);
    let found = ranges.find(|(tensor, _)| tensor.matrix == matrix)?;
    Some(found.1)
}

const GATE_BYTES: u64 = HIDDEN / 32 * 18 * WIDTH;
const DOWN_BYTES: u64 = WIDTH / 32 * 34 * HIDDEN;

#[test]
fn experts_are_found_where_the_writer_put_them() {
    let synth = Synth::new("qwen3moe").experts(1, 2);
    let (spec, bytes) = (spec(&synth).unwrap(), synth.bytes());
    assert_eq!((spec.experts, spec.used, spec.expert_width), (8, 2, WIDTH));
    assert_eq!(spec.leading_dense_layers, 1);
    assert!(spec.layer(0).is_none() && spec.layer(LAYERS).is_none());
    for layer in 1..LAYERS {
        for expert in 0..EXPERTS as u32 {
            for (matrix, len) in [(Matrix::Gate, GATE_BYTES), (Matrix::Down, DOWN_BYTES)] {
                let range = locate(&spec, layer, expert, matrix).unwrap();
                let start = range.offset as usize;
                let data = &bytes[start..start + range.len_bytes as usize];
                let expected = (0..len).map(|at| (u64::from(expert) * len + at) as u8);
                assert!(data.iter().copied().eq(expected), "{layer} {expert} {matrix:?}");
            }
        }
        assert_eq!(locate(&spec, layer, EXPERTS as u32, Matrix::Gate), None);
        assert_eq!(locate(&spec, layer, 0, Matrix::GateUp), None);
    }
}

#[test]
fn sizes_add_up() {
    let spec = spec(&Synth::new("qwen3moe").experts(1, 2)).unwrap();
    let sizes = Sizes::of(&spec);
    let (expert, table) = (2 * GATE_BYTES + DOWN_BYTES, HIDDEN / 32 * 34 * 100);
    let attention = u64::from(LAYERS) * HIDDEN * HIDDEN * 2;
    let router = 2 * HIDDEN * EXPERTS * 4;
    assert_eq!((sizes.expert_bytes_min, sizes.expert_bytes_max), (expert, expert));
    assert_eq!(sizes.routed_bytes, 2 * EXPERTS * expert);
    assert_eq!(sizes.dense_bytes, 2 * table + attention + router);
    assert_eq!(sizes.total_bytes, sizes.routed_bytes + sizes.dense_bytes);
    assert_eq!(sizes.token_routed_bytes, 2 * 2 * expert);
    // Of the embedding a token reads one row; the output matrix is read whole.
    let row = table / 100;
    assert_eq!(sizes.token_active_bytes, row + table + attention + router + 2 * 2 * expert);
    // 3 layers, 2 kv heads of 16, keys and values, 2 bytes each.
    assert_eq!(sizes.kv_bytes_per_token, 3 * 2 * (16 + 16) * 2);
}

#[test]
fn routers_follow_their_architecture() {
    use Gating::*;
    let table = [
        ("llama", Softmax, true),
        ("qwen3moe", Softmax, true),
        ("qwen2moe", Softmax, false),
        ("olmoe", Softmax, false),
        ("phimoe", Softmax, true),
        ("granitemoe", Softmax, true),
        ("gpt-oss", SoftmaxWeight, false),
        ("deepseek2", Softmax, false),
        ("glm4moe", Sigmoid, false),
        ("llama4", Sigmoid, false),
        ("of-tomorrow", Unknown, false),
    ];
    for (architecture, gating, normalised) in table {
        let router = spec(&Synth::new(architecture).experts(0, 2)).unwrap().router.unwrap();
        assert_eq!((router.gating, router.normalised), (gating, normalised), "{architecture}");
        assert!(!router.selection_bias && !router.logit_bias);
    }
}

#[test]
fn deepseek_v3_has_groups_bias_shared_experts_and_latent_attention() {
    let mut synth = Synth::new("deepseek2")
        .experts(1, 2)
        .key("expert_gating_func", 2u32)
        .key("expert_weights_norm", true)
        .key("expert_weights_scale", 2.5f32)
        .key("expert_group_count", 4u32)
        .key("expert_group_used_count", 2u32)
        .key("expert_shared_count", 2u32)
        .key("attention.head_count_kv", 1u32)
        .key("attention.key_length", 48u32)
        .key("attention.value_length", 32u32)
        .key("attention.key_length_mla", 24u32)
        .key("attention.value_length_mla", 16u32)
        .tensor("blk.1.exp_probs_b.bias", &[EXPERTS], F32);
    for stem in ["gate", "up"] {
        let name = format!("blk.1.ffn_{stem}_shexp.weight");
        synth = synth.tensor(&name, &[HIDDEN, 2 * WIDTH], Q8_0);
    }
    synth = synth.tensor("blk.1.ffn_down_shexp.weight", &[2 * WIDTH, HIDDEN], Q8_0);
    let spec = spec(&synth).unwrap();
    let router = spec.router.as_ref().unwrap();
    assert_eq!((router.gating, router.normalised), (Gating::Sigmoid, true));
    assert_eq!(router.groups, Some(Groups { count: 4, used: 2 }));
    assert_eq!(router.weights_scale, Some(2.5));
    assert!(router.selection_bias);
    let shared = spec.shared.unwrap();
    assert_eq!((shared.count, shared.width, shared.gated), (2, 2 * WIDTH, false));
    let sizes = Sizes::of(&spec);
    assert_eq!(sizes.shared_bytes, 3 * 2 * WIDTH * HIDDEN / 32 * 34);
    // Only the latent row of 48 is cached, for each of 3 layers, at 2 bytes.
    assert_eq!(sizes.kv_bytes_per_token, 3 * 48 * 2);
}

#[test]
fn gpt_oss_has_biases_per_expert() {
    let mut synth = Synth::new("gpt-oss").key("expert_count", 8u32).key("expert_used_count", 4u32);
    for (stem, columns, rows) in
        [("gate", HIDDEN, WIDTH), ("up", HIDDEN, WIDTH), ("down", WIDTH, HIDDEN)]
    {
        synth = synth
            .tensor(&format!("blk.0.ffn_{stem}_exps.weight"), &[columns, rows, EXPERTS], MXFP4)
            .tensor(&format!("blk.0.ffn_{stem}_exps.bias"), &[rows, EXPERTS], F32);
    }
    synth = synth.tensor("blk.0.ffn_gate_inp.bias", &[EXPERTS], F32);
    let spec = spec(&synth).unwrap();
    assert!(spec.router.as_ref().unwrap().logit_bias);
    let layer = spec.layer(0).unwrap();
    let is_bias =
        |tensor: &ExpertTensor| (tensor.matrix, tensor.part) == (Matrix::Down, TensorPart::Bias);
    let bias = layer.ranges(3).find(|(tensor, _)| is_bias(tensor)).unwrap().1;
    assert_eq!(bias.len_bytes, HIDDEN * 4);
    assert_eq!(layer.ranges(3).count(), 6);
    assert_eq!(layer.expert_bytes(), 3 * HIDDEN * WIDTH / 32 * 17 + (2 * WIDTH + HIDDEN) * 4);
    assert_eq!(layer.total_bytes(), Sizes::of(&spec).routed_bytes);
}

#[test]
fn predictor_layers_are_kept_apart() {
    let synth = Synth::new("glm4moe").experts(0, 2).key("nextn_predict_layers", 1u32);
    let spec = spec(&synth).unwrap();
    assert_eq!((spec.shape.layers, spec.shape.predictor_layers), (LAYERS - 1, 1));
    assert_eq!(spec.expert_layers().count(), 2);
    let predictor = |t: &&motley_model::SpecTensor| matches!(t.role, Role::Predictor { layer: 2 });
    assert_eq!(spec.tensors.iter().filter(predictor).count(), 5);
    let sizes = Sizes::of(&spec);
    let rest = sizes.dense_bytes + sizes.routed_bytes;
    assert_eq!(sizes.total_bytes, rest + sizes.predictor_bytes);
}

#[test]
fn recurrent_layers_cache_no_keys() {
    let spec = spec(&Synth::new("qwen3next").key("full_attention_interval", 3u32)).unwrap();
    assert_eq!(spec.shape.attention.kv_layers, 1);
    assert_eq!(spec.shape.attention.kv_elements_per_token, 2 * (16 + 16));
}

#[test]
fn recurrent_layers_keep_a_state_and_what_their_convolution_looks_back_at() {
    let synth = Synth::new("qwen3next").key("full_attention_interval", 3u32);
    let synth = synth.key("ssm.inner_size", 64u32).key("ssm.state_size", 16u32);
    let synth = synth.key("ssm.group_count", 2u32).key("ssm.conv_kernel", 4u32);
    let spec = spec(&synth).unwrap();
    assert_eq!(spec.shape.attention.state_elements, 2 * (64 * 16 + 3 * (64 + 2 * 2 * 16)));
    assert_eq!(Sizes::of(&spec).state_bytes, spec.shape.attention.state_elements * 4);
}

#[test]
fn a_dense_model_is_a_model() {
    let spec = spec(&Synth::new("llama")).unwrap();
    assert!(!spec.is_moe());
    assert_eq!((spec.experts, spec.used, spec.leading_dense_layers), (0, 0, LAYERS));
    assert!(spec.router.is_none() && spec.shared.is_none());
    let sizes = Sizes::of(&spec);
    assert_eq!(sizes.total_bytes, sizes.dense_bytes);
}

#[test]
fn wrong_models_are_refused_by_name() {
    let moe = || Synth::new("llama").experts(0, 2);
    let old = Synth::new("llama").tensor("blk.0.ffn_gate.0.weight", &[HIDDEN, WIDTH], Q4_0);
    assert!(matches!(spec(&old), Err(SpecError::OldFormat { .. })));
    let used = spec(&moe().key("expert_used_count", 9u32));
    assert!(matches!(used, Err(SpecError::Used { layer: 0, used: 9, experts: 8 })));
    let count = spec(&moe().key("expert_count", 4u32));
    assert!(matches!(count, Err(SpecError::ExpertShape { experts: 4, .. })));
    let count = spec(&moe().key("expert_count", 4096u32));
    assert!(matches!(count, Err(SpecError::TooLarge { value: 4096, limit: 1024, .. })));
    let layers = spec(&moe().key("block_count", 100_000u32));
    assert!(matches!(layers, Err(SpecError::TooLarge { .. })));
    let heads = spec(&moe().key("attention.head_count_kv", vec![2u32; 2]));
    assert!(matches!(heads, Err(SpecError::NotACount { .. })));
    let groups = spec(&moe().key("expert_group_count", 3u32).key("expert_group_used_count", 1u32));
    assert!(matches!(groups, Err(SpecError::Groups { count: 3, .. })));
    let mut nameless = moe();
    nameless.metadata.remove("general.architecture");
    assert!(matches!(spec(&nameless), Err(SpecError::Missing { .. })));
    let twice = [moe().header(), moe().header()];
    assert!(matches!(ModelSpec::from_headers(&twice), Err(SpecError::Duplicate { .. })));
}

#[test]
fn any_shard_opens_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let synth = Synth::new("qwen3moe").experts(0, 2);
    let paths = synth.write_split(directory.path(), 3);
    let whole = spec(&synth).unwrap();
    for path in &paths {
        let (split, files) = ModelSpec::open(path).unwrap();
        assert_eq!(files.paths, paths);
        assert_eq!(Sizes::of(&split), Sizes::of(&whole));
        let layout = files.layout().unwrap();
        assert_eq!(layout.header[..], synth.bytes()[..layout.header.len()]);
        let range = locate(&split, 2, 5, Matrix::Down).unwrap();
        let bytes = fs::read(&files.paths[range.file]).unwrap();
        assert_eq!(bytes[range.offset as usize], (5 * DOWN_BYTES) as u8);
    }
}

#[test]
fn broken_splits_say_what_is_wrong() {
    let synth = Synth::new("qwen3moe").experts(0, 2);
    let open_after = |change: fn(&[std::path::PathBuf])| {
        let directory = tempfile::tempdir().unwrap();
        let paths = synth.write_split(directory.path(), 3);
        change(&paths);
        match ModelSpec::open(&paths[0]) {
            Err(ModelError::Open(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let missing = open_after(|paths| fs::remove_file(&paths[1]).unwrap());
    assert!(matches!(missing, OpenError::ShardMissing { number: 1, count: 3, .. }));
    assert!(missing.to_string().contains("synth-00002-of-00003.gguf: part 2 of 3 is missing"));
    let swapped = open_after(|paths| fs::rename(&paths[2], &paths[1]).unwrap());
    assert!(matches!(swapped, OpenError::ShardMismatch { number: 2, expected: 1, .. }));
    let cut = open_after(|paths| {
        let bytes = fs::read(&paths[2]).unwrap();
        fs::write(&paths[2], &bytes[..bytes.len() / 2]).unwrap();
    });
    assert!(matches!(cut, OpenError::Header { .. }));

    let directory = tempfile::tempdir().unwrap();
    let paths = synth.write_split(directory.path(), 3);
    let renamed = directory.path().join("model.gguf");
    fs::rename(&paths[0], &renamed).unwrap();
    let error = ModelSpec::open(&renamed).unwrap_err();
    assert!(matches!(error, ModelError::Open(OpenError::ShardName { .. })));
    let error = ModelSpec::open(directory.path()).unwrap_err();
    assert!(matches!(error, ModelError::Open(OpenError::Directory { .. })));
}

#[test]
fn the_trained_model_reads_as_its_card_says() {
    for (file, routed) in [("f16", GgmlType::F16), ("q8_0", Q8_0), ("q4_k_m", GgmlType::Q4_K)] {
        let name = format!("tiny-wiki-moe/tiny-wiki-moe-{file}.gguf");
        let Some(path) = shared(&name) else { return };
        let (spec, files) = ModelSpec::open(&path).unwrap();
        assert_eq!(spec.architecture, "qwen3moe");
        assert_eq!((spec.shape.layers, spec.shape.hidden), (6, 256));
        assert_eq!((spec.experts, spec.used, spec.expert_width), (32, 4, 256));
        let attention = &spec.shape.attention;
        assert_eq!((attention.heads, attention.kv_heads, attention.key_width), (4, 2, 64));
        assert_eq!((spec.shape.context_tokens, spec.shape.vocabulary), (512, Some(4096)));
        let summary = Summary::new(&spec, &files);
        assert_eq!(summary.sizes.parameters, 41_078_784);
        // The card counts the embedding whole, where a token reads one row, and no norms.
        let norms = 6 * (2 * 256 + 2 * 64) + 256;
        assert_eq!(summary.sizes.active_parameters, 8_044_544 - 4095 * 256 + norms);
        assert_eq!(summary.quantisation.routed[0].ty, routed);
        assert_eq!(summary.sizes.kv_bytes_per_token, 6 * 2 * 128 * 2);
        assert!(serde_json::to_string(&summary).unwrap().contains("\"architecture\":\"qwen3moe\""));
    }
}
