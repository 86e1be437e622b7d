//! Any bytes as a GGUF file: reader, spec and rewritten header never panic and agree.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use motley_model::gguf::{GgufHeader, GgufLimits, rewrite_header};
use motley_model::{ModelSpec, Quantisation, Sizes};

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = GgufHeader::read(Cursor::new(bytes), &GgufLimits::default()) else { return };
    for tensor in &header.tensors {
        assert!(tensor.file_offset + tensor.len_bytes <= bytes.len() as u64);
    }
    check_rewritten(&header);
    if let Ok(spec) = ModelSpec::from_headers(&[header]) {
        check_spec(&spec, bytes.len() as u64);
    }
});

/// The header written anew must be read back with the same tensors.
fn check_rewritten(header: &GgufHeader) {
    let Ok(layout) = rewrite_header(std::slice::from_ref(header)) else { return };
    let mut file = layout.header.clone();
    file.resize(layout.len as usize, 0);
    let again = GgufHeader::read(Cursor::new(file), &GgufLimits::default()).expect("own header");
    assert_eq!(again.tensors.len(), header.tensors.len());
    for (new, old) in again.tensors.iter().zip(&header.tensors) {
        assert_eq!((&new.name, &new.dims, new.ty), (&old.name, &old.dims, old.ty));
    }
}

/// Every expert must lie inside the file, and sizes must add up.
fn check_spec(spec: &ModelSpec, file_len: u64) {
    for layer in spec.expert_layers() {
        assert!(layer.tensors.len() <= 16);
        for expert in [0, layer.experts / 2, layer.experts - 1] {
            for (_, range) in layer.ranges(expert) {
                assert!(range.offset + range.len_bytes <= file_len);
            }
        }
    }
    let sizes = Sizes::of(spec);
    let parts = [sizes.dense_bytes, sizes.shared_bytes, sizes.routed_bytes, sizes.predictor_bytes];
    assert_eq!(parts.iter().sum::<u64>(), sizes.total_bytes);
    assert!(sizes.total_bytes <= file_len && sizes.token_active_bytes <= sizes.total_bytes);
    assert!(Quantisation::of(spec).dense.len() <= spec.tensors.len());
}
