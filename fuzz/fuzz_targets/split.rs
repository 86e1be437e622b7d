//! Any bytes as two shards: the virtual file over them is whole, ordered and readable.
//!
//! The first two bytes say where the second shard begins.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use motley_model::gguf::{GgufHeader, GgufLimits, Piece, VirtualLayout, rewrite_header};

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (one, two) = rest.split_at(usize::from(u16::from_le_bytes(*cut)).min(rest.len()));
    let read = |file: &[u8]| GgufHeader::read(Cursor::new(file.to_vec()), &GgufLimits::default());
    let (Ok(first), Ok(second)) = (read(one), read(two)) else { return };
    let tensors = first.tensors.len() + second.tensors.len();
    let Ok(layout) = rewrite_header(&[first, second]) else { return };
    let whole = materialise(&layout, [one, two]);
    assert_eq!(whole.len() as u64, layout.len);
    assert_eq!(read(&whole).expect("own header").tensors.len(), tensors);
});

/// Serves the virtual file piece by piece; every piece must move forward.
fn materialise(layout: &VirtualLayout, files: [&[u8]; 2]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let piece = layout.piece_at(out.len() as u64);
        match piece {
            Piece::Header(bytes) => out.extend_from_slice(bytes),
            Piece::Data { extent, skip } => {
                assert_eq!(skip, 0);
                let start = extent.file_offset as usize;
                out.extend_from_slice(&files[extent.file][start..start + extent.len as usize]);
            }
            Piece::Padding(len) => out.resize(out.len() + len as usize, 0),
            Piece::End => return out,
        }
        assert!(!piece.is_empty());
    }
}
