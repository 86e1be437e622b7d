//! What tests of this crate share: a model with other types for the same numbers.

use motley_ggml::dequantise;
use motley_model::gguf::{GgmlType, GgufHeader, GgufLimits, GgufWriter, TensorDesc, TensorInfo};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The same numbers in other types: `model` with the tensors `takes` says as floats, at `to`.
pub(crate) fn as_floats(model: &Path, to: &Path, takes: impl Fn(&TensorInfo) -> bool) {
    let file = File::open(model).expect("the model opens");
    let header = GgufHeader::read(BufReader::new(&file), &GgufLimits::default()).expect("a header");
    let desc = |tensor: &TensorInfo| TensorDesc {
        name: tensor.name.clone(),
        dims: tensor.dims.clone(),
        ty: if takes(tensor) { GgmlType::F32 } else { tensor.ty },
    };
    let descs: Vec<TensorDesc> = header.tensors.iter().map(desc).collect();
    let sink = BufWriter::new(File::create(to).expect("a new file"));
    let mut writer = GgufWriter::new(sink, &header.metadata, &descs).expect("a header");
    for tensor in &header.tensors {
        let mut bytes = vec![0; tensor.len_bytes as usize];
        file.read_exact_at(&mut bytes, tensor.file_offset).expect("the tensor is there");
        if takes(tensor) {
            let numbers = dequantise(tensor.ty, &bytes).expect("ggml knows the type");
            bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        }
        writer.tensor(&tensor.name, &bytes).expect("it is written");
    }
    writer.finish().expect("it is whole");
}
