//! Tiny model files of several architectures, whole and in two parts: seeds of `gguf` and `split`.

use anyhow::Result;
use motley_model::gguf::{GgmlType, GgufWriter, MetaValue, Metadata, StringArray, TensorDesc};
use std::path::Path;

const ARCHITECTURES: [&str; 5] = ["llama", "qwen3moe", "deepseek2", "gpt-oss", "qwen3next"];

/// One file each.
pub(super) fn write_whole(folder: &Path) -> Result<()> {
    for architecture in ARCHITECTURES {
        let (metadata, tensors) = model(architecture);
        std::fs::write(folder.join(architecture), file(&metadata, &tensors)?)?;
    }
    Ok(())
}

/// Two parts each, after two bytes that say where the second begins.
pub(super) fn write_split(folder: &Path) -> Result<()> {
    for architecture in ARCHITECTURES {
        let (metadata, tensors) = model(architecture);
        let (one, two) = tensors.split_at(tensors.len() / 2);
        let one = file(&metadata, one)?;
        let mut shards = u16::try_from(one.len())?.to_le_bytes().to_vec();
        shards.extend(one);
        shards.extend(file(&Metadata::new(), two)?);
        std::fs::write(folder.join(architecture), shards)?;
    }
    Ok(())
}

fn file(metadata: &Metadata, tensors: &[TensorDesc]) -> Result<Vec<u8>> {
    let mut writer = GgufWriter::new(Vec::new(), metadata, tensors)?;
    for (index, tensor) in tensors.iter().enumerate() {
        let len = writer.header().lens[index] as usize;
        writer.tensor(&tensor.name, &vec![index as u8; len])?;
    }
    Ok(writer.finish()?)
}

/// Two layers, hidden 32, 4 experts of width 32, and the keys an architecture may have.
fn model(architecture: &str) -> (Metadata, Vec<TensorDesc>) {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", architecture);
    metadata.insert("general.alignment", 32u32);
    metadata.insert("tokenizer.ggml.tokens", ["a", "b"].iter().collect::<StringArray>());
    let counts = [
        ("block_count", 2u32),
        ("context_length", 64),
        ("embedding_length", 32),
        ("attention.head_count", 2),
        ("attention.key_length_mla", 16),
        ("expert_count", 4),
        ("expert_used_count", 2),
        ("expert_group_count", 2),
        ("expert_group_used_count", 1),
        ("expert_gating_func", 2),
        ("nextn_predict_layers", 0),
        ("full_attention_interval", 2),
    ];
    for (key, value) in counts {
        metadata.insert(&format!("{architecture}.{key}"), value);
    }
    metadata.insert(&format!("{architecture}.attention.head_count_kv"), vec![1i32, 0]);
    metadata.insert(&format!("{architecture}.expert_weights_norm"), true);
    metadata.insert(&format!("{architecture}.expert_weights_scale"), MetaValue::F32(2.5));
    let tensor =
        |name: &str, dims: &[u64], ty| TensorDesc { name: name.into(), dims: dims.into(), ty };
    let tensors = vec![
        tensor("token_embd.weight", &[32, 2], GgmlType::F32),
        tensor("blk.0.attn_q.weight", &[32, 2], GgmlType::F16),
        tensor("blk.1.ffn_gate_inp.weight", &[32, 4], GgmlType::F32),
        tensor("blk.1.exp_probs_b.bias", &[4], GgmlType::F32),
        tensor("blk.1.ffn_gate_exps.weight", &[32, 2, 4], GgmlType::Q4_0),
        tensor("blk.1.ffn_up_exps.weight", &[32, 2, 4], GgmlType::MXFP4),
        tensor("blk.1.ffn_down_exps.weight", &[32, 2, 4], GgmlType::Q8_0),
        tensor("blk.1.ffn_down_exps.bias", &[2, 4], GgmlType::F32),
        tensor("blk.1.ffn_down_shexp.weight", &[32, 2], GgmlType::F16),
    ];
    (metadata, tensors)
}
