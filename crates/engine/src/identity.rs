//! Which model a file is: heads and workers must have the same one, wherever it lies and however it
//! is split.

use motley_model::{ModelFiles, ModelSpec, read_exact_at};
use sha2::{Digest, Sha256};
use std::io;

/// Bytes of each tensor that are looked at. Two models of one shape differ in all tensors.
const LOOK_BYTES: usize = 64;

/// Hash of the header as it is written anew, and of the first bytes of every tensor.
pub fn identity(spec: &ModelSpec, files: &ModelFiles) -> io::Result<[u8; 32]> {
    let layout = files.layout().map_err(io::Error::other)?;
    let mut hash = Sha256::new();
    hash.update(&layout.header);
    for tensor in &spec.tensors {
        let file = files.opened.get(tensor.range.file);
        let file = file.ok_or_else(|| io::Error::other("a tensor in no file"))?;
        let mut bytes = [0; LOOK_BYTES];
        let bytes = &mut bytes[..LOOK_BYTES.min(tensor.range.len_bytes as usize)];
        read_exact_at(file.file(), bytes, tensor.range.offset)?;
        hash.update(bytes);
    }
    Ok(hash.finalize().into())
}
