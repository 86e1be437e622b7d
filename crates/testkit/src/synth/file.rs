//! Streams a plan into one GGUF file, or into shards named and keyed as gguf-split does.
//!
//! Memory is one chunk, whatever the size. Files are written under a temporary name in the same
//! folder and renamed when all are complete, the first shard last, so that a path that exists is
//! a model that is whole.

use super::Request;
use super::fill::{Filler, seeded};
use super::plan::{Plan, Planned, Values};
use crate::output::{Progress, WrittenModel, new_file};
use anyhow::{Context, Result};
use motley_model::gguf::{GgmlType, GgufWriter, Metadata, TensorDesc};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Bytes generated at a time, about.
const CHUNK_BYTES: usize = 1 << 20;

/// The path of shard `number` (from 0) of `count`, as `llama_split_path` makes it.
pub fn shard_path(out: &Path, number: u32, count: u32) -> PathBuf {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{stem}-{:05}-of-{count:05}.gguf", number + 1))
}

/// The path to load: `out`, or its first shard.
pub fn first_path(out: &Path, shards: u32) -> PathBuf {
    if shards == 1 { out.to_owned() } else { shard_path(out, 0, shards) }
}

/// Writes all files of the plan.
pub fn write(
    plan: &Plan,
    request: &Request,
    out: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<WrittenModel> {
    let count = request.shards;
    let groups = split_evenly(&plan.tensors, count as usize);
    progress(Progress::Total(plan.tensors.iter().map(|tensor| bytes_of(&tensor.desc)).sum()));
    let mut files = Vec::new();
    for (number, group) in (0..count).zip(&groups) {
        let metadata = shard_metadata(plan, number, count);
        let path = if count == 1 { out.to_owned() } else { shard_path(out, number, count) };
        let file = new_file(&path)?;
        write_file(file.as_file(), &metadata, group, request.seed, progress)?;
        files.push((file, path));
    }
    let mut bytes = 0;
    for (file, path) in files.into_iter().rev() {
        bytes += file.as_file().metadata()?.len();
        file.persist(&path).with_context(|| format!("cannot name {}", path.display()))?;
    }
    Ok(WrittenModel { path: first_path(out, count), bytes, tensors: plan.tensors.len() })
}

/// The first shard carries all metadata, the others only their place.
fn shard_metadata(plan: &Plan, number: u32, count: u32) -> Metadata {
    let mut metadata = if number == 0 { plan.metadata.clone() } else { Metadata::new() };
    if count > 1 {
        metadata.insert("split.no", number as u16);
        metadata.insert("split.count", count as u16);
        metadata.insert("split.tensors.count", plan.tensors.len() as i32);
    }
    metadata
}

/// Cuts the tensors into `count` runs of about the same bytes; late runs may be empty.
fn split_evenly(tensors: &[Planned], count: usize) -> Vec<Vec<&Planned>> {
    let total: u64 = tensors.iter().map(|tensor| bytes_of(&tensor.desc)).sum();
    let mut groups = vec![Vec::new(); count];
    let mut before = 0;
    for tensor in tensors {
        let group = (before as u128 * count as u128 / u128::from(total.max(1))) as usize;
        groups[group.min(count - 1)].push(tensor);
        before += bytes_of(&tensor.desc);
    }
    groups
}

fn bytes_of(desc: &TensorDesc) -> u64 {
    desc.ty.tensor_bytes(&desc.dims).expect("a plan holds whole rows")
}

fn write_file(
    file: &File,
    metadata: &Metadata,
    tensors: &[&Planned],
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let descs: Vec<TensorDesc> = tensors.iter().map(|tensor| tensor.desc.clone()).collect();
    let mut writer = GgufWriter::new(BufWriter::new(file), metadata, &descs)?;
    for tensor in tensors {
        writer.begin(&tensor.desc.name)?;
        for_each_chunk(tensor, seed, |chunk| {
            progress(Progress::More(chunk.len() as u64));
            Ok(writer.write(chunk)?)
        })?;
        writer.end()?;
    }
    writer.finish()?;
    Ok(())
}

/// Hands the tensor's bytes to `sink`, chunk by chunk.
fn for_each_chunk(
    tensor: &Planned,
    seed: u64,
    mut sink: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let TensorDesc { name, dims, ty } = &tensor.desc;
    let filler = |std| Filler::new(*ty, std).with_context(|| format!("{name}: no {ty} generator"));
    let mut rng = seeded(seed, name);
    let row_bytes = ty.row_bytes(dims[0]).expect("a plan holds whole rows") as usize;
    match &tensor.values {
        Values::Constant { value } => {
            debug_assert_eq!(*ty, GgmlType::F32);
            sink(&value.to_le_bytes().repeat(dims.iter().product::<u64>() as usize))
        }
        Values::Rows { stds } => {
            let mut row = vec![0; row_bytes];
            stds.iter().try_for_each(|std| {
                filler(*std)?.fill(&mut rng, &mut row);
                sink(&row)
            })
        }
        Values::Random { std } => {
            let filler = filler(*std)?;
            let block = ty.block_bytes() as usize;
            let mut chunk = vec![0; CHUNK_BYTES / block * block];
            let mut left = bytes_of(&tensor.desc);
            while left > 0 {
                let len = left.min(chunk.len() as u64) as usize;
                filler.fill(&mut rng, &mut chunk[..len]);
                sink(&chunk[..len])?;
                left -= len as u64;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arch, Preset, generate};
    use super::*;
    use crate::gguf_source::{Tokenizer, read_header};

    fn request(shards: u32, seed: u64) -> Request {
        let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
        (request.shards, request.seed) = (shards, seed);
        request
    }

    fn generated(request: &Request, folder: &Path) -> WrittenModel {
        let tokenizer = Tokenizer::for_tests(&["a", "b", "c"]);
        let out = folder.join("model.gguf");
        generate(request, &tokenizer, &out, &mut |_| {}).expect("generates")
    }

    #[test]
    fn a_file_reads_back_as_planned() {
        let folder = tempfile::tempdir().expect("a folder");
        for arch in Arch::ALL {
            let request = Request::of_preset(Preset::Test(*arch));
            let report = generated(&request, folder.path());
            let header = read_header(&report.path).expect("parses");
            assert_eq!(header.file_len, report.bytes, "{arch}");
            assert_eq!(header.tensors.len(), report.tensors, "{arch}");
            let read = header.metadata.get("general.architecture").and_then(|v| v.as_str());
            assert_eq!(read, Some(arch.name()));
        }
    }

    #[test]
    fn the_seed_decides_every_byte() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = |seed| {
            let report = generated(&request(1, seed), folder.path());
            std::fs::read(report.path).expect("a file")
        };
        assert_eq!(bytes(3), bytes(3));
        assert_ne!(bytes(3), bytes(4));
    }

    #[test]
    fn shards_hold_the_same_tensors_as_one_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let tensors = |path: &Path| -> Vec<(String, Vec<u8>)> {
            let bytes = std::fs::read(path).expect("a file");
            let header = read_header(path).expect("parses");
            let data = |offset: u64, len: u64| bytes[offset as usize..][..len as usize].to_vec();
            let tensor =
                |t: motley_model::gguf::TensorInfo| (t.name, data(t.file_offset, t.len_bytes));
            header.tensors.into_iter().map(tensor).collect()
        };
        let whole = tensors(&generated(&request(1, 5), folder.path()).path);
        let first = generated(&request(3, 5), folder.path()).path;
        assert!(first.ends_with("model-00001-of-00003.gguf"), "{first:?}");
        let out = folder.path().join("model.gguf");
        let mut joint = Vec::new();
        for number in 0..3 {
            let path = shard_path(&out, number, 3);
            let header = read_header(&path).expect("parses");
            let key = |name| header.metadata.get(name).and_then(|value| value.as_u64());
            assert_eq!(key("split.no"), Some(u64::from(number)));
            assert_eq!(key("split.count"), Some(3));
            assert_eq!(key("split.tensors.count"), Some(whole.len() as u64));
            assert_eq!(header.metadata.get("general.architecture").is_some(), number == 0);
            joint.extend(tensors(&path));
        }
        assert!(joint == whole);
    }

    #[test]
    fn a_refused_request_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bad = request(1, 0);
        bad.shape.topk = 17;
        let tokenizer = Tokenizer::for_tests(&["a"]);
        assert!(generate(&bad, &tokenizer, &folder.path().join("m.gguf"), &mut |_| {}).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
