//! Existing models with something of theirs changed, as a stranger's file would be. Writes files;
//! what is wrong with them is the test's business.

use motley_model::gguf::{GgufWriter, Metadata, TensorDesc, TensorInfo};
use motley_testkit::gguf_source::read_header;
use std::io::BufWriter;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// The model at `path` with its metadata and the bytes of its tensors changed.
pub(crate) fn changed(
    path: &Path,
    metadata: impl FnOnce(Metadata) -> Metadata,
    mut bytes: impl FnMut(&TensorInfo, &mut [u8]),
) -> NamedTempFile {
    let header = read_header(path).expect("a model");
    let whole = std::fs::read(path).expect("a file");
    let desc = |t: &TensorInfo| TensorDesc { name: t.name.clone(), dims: t.dims.clone(), ty: t.ty };
    let tensors: Vec<TensorDesc> = header.tensors.iter().map(desc).collect();
    let file = Builder::new().suffix(".gguf").tempfile().expect("a temporary file");
    let sink = BufWriter::new(file.as_file());
    let mut writer = GgufWriter::new(sink, &metadata(header.metadata), &tensors).expect("a header");
    for tensor in &header.tensors {
        let start = tensor.file_offset as usize;
        let mut own = whole[start..start + tensor.len_bytes as usize].to_vec();
        bytes(tensor, &mut own);
        writer.tensor(&tensor.name, &own).expect("a tensor");
    }
    writer.finish().expect("a file");
    file
}

/// The same metadata with every key that begins with `from` beginning with `to`.
pub(crate) fn renamed(metadata: &Metadata, from: &str, to: &str) -> Metadata {
    let mut changed = Metadata::new();
    for (key, value) in metadata.iter() {
        let rest = key.strip_prefix(from);
        changed.insert(&rest.map_or(key.to_owned(), |rest| format!("{to}{rest}")), value.clone());
    }
    changed
}
