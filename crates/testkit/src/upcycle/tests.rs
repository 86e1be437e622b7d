//! Upcycling a tiny dense model: every expert computes the dense FFN, and nothing else changed.

use super::{Request, upcycle};
use crate::dequant::dequantise;
use crate::gguf_source::read_header;
use crate::synth::fill::{Filler, seeded};
use motley_model::gguf::{GgmlType, GgufHeader, GgufWriter, Metadata, TensorDesc};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const HIDDEN: u64 = 64;
const FF: u64 = 256;
const LAYERS: u64 = 2;
const REQUEST: Request = Request { experts: 5, topk: 2, block: 32, seed: 9 };

/// Types of gate, up and down.
type Types = [GgmlType; 3];

fn dense_tensors(types: Types) -> Vec<TensorDesc> {
    let tensor = |name: String, dims: &[u64], ty| TensorDesc { name, dims: dims.to_vec(), ty };
    let mut tensors = vec![tensor("token_embd.weight".into(), &[HIDDEN, 7], GgmlType::Q8_0)];
    for layer in 0..LAYERS {
        let blk = |part: &str| format!("blk.{layer}.{part}.weight");
        tensors.push(tensor(blk("ffn_down"), &[FF, HIDDEN], types[2]));
        tensors.push(tensor(blk("ffn_gate"), &[HIDDEN, FF], types[0]));
        tensors.push(tensor(blk("ffn_up"), &[HIDDEN, FF], types[1]));
        tensors.push(tensor(blk("ffn_norm"), &[HIDDEN], GgmlType::F32));
    }
    tensors
}

fn write_dense(folder: &Path, arch: &str, tensors: &[TensorDesc]) -> PathBuf {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", arch);
    metadata.insert("llama.feed_forward_length", FF as u32);
    let path = folder.join("dense.gguf");
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer = GgufWriter::new(file, &metadata, tensors).expect("a header");
    for TensorDesc { name, dims, ty } in tensors {
        let mut bytes = vec![0; ty.tensor_bytes(dims).expect("whole blocks") as usize];
        Filler::new(*ty, 0.1).expect("a known type").fill(&mut seeded(4, name), &mut bytes);
        writer.tensor(name, &bytes).expect("a tensor");
    }
    writer.finish().expect("a file");
    path
}

/// A file, its header and its bytes.
struct Model {
    header: GgufHeader,
    bytes: Vec<u8>,
}

impl Model {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a file");
        Self { header: read_header(path).expect("a header"), bytes }
    }

    fn tensor(&self, name: &str) -> (GgmlType, &[u8]) {
        let info = self.header.tensors.iter().find(|t| t.name == name).expect(name);
        (info.ty, &self.bytes[info.file_offset as usize..][..info.len_bytes as usize])
    }

    /// Values of matrix `part`; of one expert in a mixture.
    fn matrix(&self, layer: u64, part: &str, expert: Option<u64>) -> Vec<f32> {
        let suffix = if expert.is_some() { "_exps" } else { "" };
        let (ty, bytes) = self.tensor(&format!("blk.{layer}.ffn_{part}{suffix}.weight"));
        let len = ty.row_bytes(HIDDEN * FF).expect("whole blocks") as usize;
        dequantise(ty, &bytes[expert.unwrap_or(0) as usize * len..][..len])
    }

    fn ffn(&self, layer: u64, expert: Option<u64>, input: &[f32]) -> Vec<f32> {
        let gate = product(&self.matrix(layer, "gate", expert), input);
        let up = product(&self.matrix(layer, "up", expert), input);
        let inner: Vec<f32> =
            gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        product(&self.matrix(layer, "down", expert), &inner)
    }
}

fn product(matrix: &[f32], input: &[f32]) -> Vec<f32> {
    let row = |row: &[f32]| row.iter().zip(input).map(|(w, x)| w * x).sum();
    matrix.chunks_exact(input.len()).map(row).collect()
}

fn mixture_of(types: Types, request: &Request) -> (Model, Model) {
    let folder = tempfile::tempdir().expect("a folder");
    let dense = write_dense(folder.path(), "llama", &dense_tensors(types));
    let out = folder.path().join("mixture.gguf");
    upcycle(&dense, request, &out, &mut |_| {}).expect("upcycles");
    (Model::read(&dense), Model::read(&out))
}

fn check_experts_equal_dense(types: Types, request: &Request) {
    let (dense, mixture) = mixture_of(types, request);
    let input: Vec<f32> = (0..HIDDEN).map(|i| ((i * 37 % 64) as f32 - 32.0) / 20.0).collect();
    for layer in 0..LAYERS {
        let want = dense.ffn(layer, None, &input);
        let scale = want.iter().fold(0f32, |max, v| max.max(v.abs()));
        for expert in 0..request.experts {
            let have = mixture.ffn(layer, Some(expert), &input);
            for (a, b) in want.iter().zip(&have) {
                assert!((a - b).abs() < 1e-5 * scale, "layer {layer} expert {expert}: {a} {b}");
            }
        }
    }
}

#[test]
fn every_expert_computes_the_dense_ffn_whatever_the_types() {
    use GgmlType::{F16, Q4_0, Q4_1, Q4_K, Q8_0};
    check_experts_equal_dense([Q4_1, Q4_1, Q4_1], &REQUEST);
    check_experts_equal_dense([Q8_0, Q4_0, Q4_1], &REQUEST);
    check_experts_equal_dense([F16, Q8_0, F16], &REQUEST);
    check_experts_equal_dense([Q8_0, Q8_0, Q4_K], &Request { block: 256, ..REQUEST });
}

#[test]
fn experts_differ_as_bytes_and_in_every_matrix() {
    let (_, mixture) = mixture_of([GgmlType::Q8_0; 3], &REQUEST);
    for part in ["gate", "up", "down"] {
        let first = mixture.matrix(0, part, Some(0));
        for expert in 1..REQUEST.experts {
            assert_ne!(mixture.matrix(0, part, Some(expert)), first, "{part} {expert}");
        }
    }
}

#[test]
fn the_rest_is_copied_and_the_router_is_sized() {
    let (dense, mixture) = mixture_of([GgmlType::Q4_0; 3], &REQUEST);
    for name in ["token_embd.weight", "blk.1.ffn_norm.weight"] {
        assert_eq!(mixture.tensor(name), dense.tensor(name));
    }
    let key = |name| mixture.header.metadata.get(name).and_then(|value| value.as_u64());
    assert_eq!(key("llama.expert_count"), Some(5));
    assert_eq!(key("llama.expert_used_count"), Some(2));
    let (_, norm) = dense.tensor("blk.0.ffn_norm.weight");
    let (_, router) = mixture.tensor("blk.0.ffn_gate_inp.weight");
    let square = |bytes| dequantise(GgmlType::F32, bytes).iter().map(|v| v * v).sum::<f32>();
    // Expected square of one row's logit: |row|^2 times the mean square of the norm's output.
    let logit_square = square(router) / 5.0 * square(norm) / HIDDEN as f32;
    assert!((0.7..1.4).contains(&logit_square), "{logit_square}");
}

fn refusal(arch: &str, types: Types, request: &Request) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let dense = write_dense(folder.path(), arch, &dense_tensors(types));
    let out = folder.path().join("mixture.gguf");
    let error = upcycle(&dense, request, &out, &mut |_| {}).expect_err("a refusal");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "only the dense");
    format!("{error:#}")
}

#[test]
fn what_cannot_be_exact_is_refused_with_a_way_out() {
    let q8 = [GgmlType::Q8_0; 3];
    let k_quant = [GgmlType::Q8_0, GgmlType::Q8_0, GgmlType::Q4_K];
    let with = |change: fn(&mut Request)| {
        let mut request = REQUEST;
        change(&mut request);
        request
    };
    let cases = [
        (refusal("llama", k_quant, &REQUEST), "say --block 256"),
        (refusal("qwen2", q8, &REQUEST), "architecture is qwen2"),
        (refusal("llama", q8, &with(|r| r.block = 96)), "blocks of 96"),
        (refusal("llama", q8, &with(|r| r.topk = 6)), "--topk"),
        (refusal("llama", q8, &with(|r| r.experts = 1)), "--experts"),
    ];
    for (error, expected) in cases {
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_request_is_exact_and_repeatable(experts in 2u64..9, seed: u64, wide: bool) {
        let block = if wide { 64 } else { 32 };
        let request = Request { experts, topk: 1, block, seed };
        check_experts_equal_dense([GgmlType::Q4_0; 3], &request);
        let bytes = || mixture_of([GgmlType::Q4_0; 3], &request).1.bytes;
        prop_assert!(bytes() == bytes());
    }
}
