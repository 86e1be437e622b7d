//! What the writer writes, the reader reads: properties over random headers, and data through the
//! virtual layout. No real models.

use std::io::Cursor;

use motley_model::gguf::{
    GgmlType, GgufHeader, GgufLimits, GgufString, GgufWriter, MetaArray, MetaValue, Metadata,
    Piece, ReadError, StringArray, TensorDesc, TensorProblem, VirtualLayout, WriteError,
    encode_header, rewrite_header,
};
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = MetaValue> {
    prop_oneof![
        any::<u8>().prop_map(MetaValue::from),
        any::<i8>().prop_map(MetaValue::from),
        any::<u16>().prop_map(MetaValue::from),
        any::<i16>().prop_map(MetaValue::from),
        any::<u32>().prop_map(MetaValue::from),
        any::<i32>().prop_map(MetaValue::from),
        any::<f32>().prop_map(MetaValue::from),
        any::<bool>().prop_map(MetaValue::from),
        any::<u64>().prop_map(MetaValue::from),
        any::<i64>().prop_map(MetaValue::from),
        any::<f64>().prop_map(MetaValue::from),
        any::<Vec<u8>>().prop_map(|bytes| MetaValue::String(GgufString::from(bytes))),
    ]
}

fn array() -> impl Strategy<Value = MetaValue> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(MetaValue::from),
        any::<Vec<i8>>().prop_map(MetaValue::from),
        any::<Vec<u16>>().prop_map(MetaValue::from),
        any::<Vec<i16>>().prop_map(MetaValue::from),
        any::<Vec<u32>>().prop_map(MetaValue::from),
        any::<Vec<i32>>().prop_map(MetaValue::from),
        any::<Vec<f32>>().prop_map(MetaValue::from),
        any::<Vec<bool>>().prop_map(MetaValue::from),
        any::<Vec<u64>>().prop_map(MetaValue::from),
        any::<Vec<i64>>().prop_map(MetaValue::from),
        any::<Vec<f64>>().prop_map(MetaValue::from),
        any::<Vec<Vec<u8>>>().prop_map(|strings| StringArray::from_iter(strings).into()),
    ]
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let entries = prop::collection::vec(("[a-z.]{1,20}", prop_oneof![scalar(), array()]), 0..12);
    (entries, prop::option::of(0u32..9)).prop_map(|(entries, alignment)| {
        let mut metadata = Metadata::new();
        for (key, value) in entries {
            metadata.insert(&format!("k.{key}"), value);
        }
        if let Some(power) = alignment {
            metadata.insert("general.alignment", 1u32 << power);
        }
        metadata
    })
}

fn tensors() -> impl Strategy<Value = Vec<TensorDesc>> {
    let ty = prop::sample::select(GgmlType::ALL);
    let dims = prop::collection::vec(0u64..4, 0..4);
    prop::collection::vec((ty, 0u64..4, dims), 0..8).prop_map(|tensors| {
        let desc = |(index, (ty, blocks, rest)): (usize, (GgmlType, u64, Vec<u64>))| {
            let mut dims = vec![blocks * ty.block_elements()];
            dims.extend(rest);
            TensorDesc { name: format!("t{index}"), dims, ty }
        };
        tensors.into_iter().enumerate().map(desc).collect()
    })
}

/// A file whose tensor bytes tell which tensor and position they belong to.
fn write_file(metadata: &Metadata, tensors: &[TensorDesc], seed: usize) -> Vec<u8> {
    let mut writer = GgufWriter::new(Vec::new(), metadata, tensors).unwrap();
    for (index, tensor) in tensors.iter().enumerate() {
        writer.begin(&tensor.name).unwrap();
        let data = tensor_data(tensor, seed + index);
        data.chunks(7).for_each(|chunk| writer.write(chunk).unwrap());
        writer.end().unwrap();
    }
    writer.finish().unwrap()
}

fn tensor_data(tensor: &TensorDesc, seed: usize) -> Vec<u8> {
    let len = tensor.ty.tensor_bytes(&tensor.dims).unwrap() as usize;
    (0..len).map(|position| (seed * 31 + position + 1) as u8).collect()
}

fn read(bytes: &[u8]) -> Result<GgufHeader, ReadError> {
    GgufHeader::read(Cursor::new(bytes), &GgufLimits::default())
}

/// Reads the whole virtual file the way a stream would serve it.
fn materialise(layout: &VirtualLayout, files: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        match layout.piece_at(out.len() as u64) {
            Piece::Header(bytes) => out.extend_from_slice(bytes),
            Piece::Data { extent, skip } => {
                let start = (extent.file_offset + skip) as usize;
                out.extend_from_slice(
                    &files[extent.file][start..start + (extent.len - skip) as usize],
                );
            }
            Piece::Padding(len) => out.resize(out.len() + len as usize, 0),
            Piece::End => return out,
        }
    }
}

proptest! {
    #[test]
    fn reader_gives_back_what_the_writer_got(metadata in metadata(), tensors in tensors()) {
        let bytes = write_file(&metadata, &tensors, 0);
        let header = read(&bytes).unwrap();
        prop_assert_eq!(header.file_len, bytes.len() as u64);
        // NaN differs from itself, so metadata is compared as the bytes it encodes to.
        let again = encode_header(&header.metadata, &tensors).unwrap();
        prop_assert_eq!(&again.bytes[..], &bytes[..again.bytes.len()]);
        prop_assert_eq!(header.tensors.len(), tensors.len());
        for (index, (got, put)) in header.tensors.iter().zip(&tensors).enumerate() {
            prop_assert_eq!((&got.name, &got.dims, got.ty), (&put.name, &put.dims, put.ty));
            let start = got.file_offset as usize;
            let data = &bytes[start..start + got.len_bytes as usize];
            prop_assert_eq!(data, &tensor_data(put, index)[..]);
        }
    }

    #[test]
    fn a_virtual_file_of_one_file_is_that_file(metadata in metadata(), tensors in tensors()) {
        let bytes = write_file(&metadata, &tensors, 0);
        let layout = rewrite_header(&[read(&bytes).unwrap()]).unwrap();
        prop_assert_eq!(materialise(&layout, &[&bytes]), bytes);
    }

    #[test]
    fn a_virtual_file_of_a_split_is_the_whole(
        metadata in metadata(), tensors in tensors(), cut in 0usize..8,
    ) {
        let (first, second) = tensors.split_at(cut.min(tensors.len()));
        let mut first_metadata = metadata.clone();
        first_metadata.insert("split.no", 0u16);
        first_metadata.insert("split.count", 2u16);
        let mut second_metadata = Metadata::new();
        second_metadata.insert("split.no", 1u16);
        second_metadata.insert("general.alignment", 8u32);
        let one = write_file(&first_metadata, first, 0);
        let two = write_file(&second_metadata, second, first.len());
        let layout = rewrite_header(&[read(&one).unwrap(), read(&two).unwrap()]).unwrap();
        prop_assert_eq!(materialise(&layout, &[&one, &two]), write_file(&metadata, &tensors, 0));
    }

    #[test]
    fn a_cut_file_is_refused(metadata in metadata(), tensors in tensors(), cut in any::<prop::sample::Index>()) {
        let bytes = write_file(&metadata, &tensors, 0);
        let header = read(&bytes).unwrap();
        let needed = header.tensors.iter().filter(|tensor| tensor.len_bytes > 0)
            .map(|tensor| tensor.file_offset + tensor.len_bytes).max();
        prop_assume!(needed.is_some());
        prop_assert!(read(&bytes[..cut.index(needed.unwrap() as usize)]).is_err());
    }

    #[test]
    fn flipped_bytes_never_panic(
        metadata in metadata(), tensors in tensors(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = write_file(&metadata, &tensors, 0);
        for (index, value) in flips {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(header) = read(&bytes) {
            let layout = rewrite_header(&[header]).unwrap();
            prop_assert!(read(&materialise(&layout, &[&bytes])).is_ok());
        }
    }
}

fn small() -> (Metadata, Vec<TensorDesc>) {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    let desc = |name: &str| TensorDesc { name: name.into(), dims: vec![8], ty: GgmlType::F32 };
    (metadata, vec![desc("a"), desc("b")])
}

#[test]
fn writer_checks_order_and_length() {
    let (metadata, tensors) = small();
    let mut writer = GgufWriter::new(Vec::new(), &metadata, &tensors).unwrap();
    assert!(matches!(writer.begin("b"), Err(WriteError::Order { .. })));
    writer.begin("a").unwrap();
    writer.write(&[0; 31]).unwrap();
    assert!(matches!(writer.end(), Err(WriteError::Length { need: 32, given: 31, .. })));
    assert!(matches!(writer.write(&[0; 2]), Err(WriteError::Length { need: 32, given: 33, .. })));
    writer.write(&[0]).unwrap();
    writer.end().unwrap();
    assert!(matches!(writer.finish(), Err(WriteError::Order { .. })));
}

#[test]
fn limits_name_what_they_refuse() {
    let (mut metadata, tensors) = small();
    metadata.insert("list", vec![1u32; 100]);
    let bytes = write_file(&metadata, &tensors, 0);
    let refused = |change: fn(&mut GgufLimits)| {
        let mut limits = GgufLimits::default();
        change(&mut limits);
        match GgufHeader::read(Cursor::new(&bytes), &limits) {
            Err(ReadError::Limit { what, value, limit, .. }) => (what, value, limit),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|l| l.max_tensors = 1), ("tensor count", 2, 1));
    assert_eq!(refused(|l| l.max_metadata_entries = 1), ("metadata count", 2, 1));
    assert_eq!(refused(|l| l.max_array_len = 99), ("array length", 100, 99));
    assert_eq!(refused(|l| l.max_string_bytes = 4), ("metadata value", 5, 4));
    assert_eq!(refused(|l| l.max_dims = 0), ("tensor dimensions", 1, 0));
    assert_eq!(refused(|l| l.max_header_bytes = 64).0, "header bytes");
}

#[test]
fn hostile_counts_are_refused_before_memory_is_taken() {
    let (metadata, tensors) = small();
    let mut bytes = write_file(&metadata, &tensors, 0);
    bytes[8..16].copy_from_slice(&100_000u64.to_le_bytes());
    assert!(matches!(read(&bytes), Err(ReadError::Truncated { what: "tensor infos", .. })));
    bytes[16..24].copy_from_slice(&60_000u64.to_le_bytes());
    assert!(matches!(read(&bytes), Err(ReadError::Truncated { what: "metadata", .. })));
}

#[test]
fn overlapping_and_misplaced_tensors_are_refused() {
    let (metadata, tensors) = small();
    let good = write_file(&metadata, &tensors, 0);
    let header = read(&good).unwrap();
    // The last eight bytes of the tensor infos are the offset of "b".
    let infos_end = encode_header(&metadata, &tensors).unwrap().bytes;
    let at = infos_end.windows(8).rposition(|window| window == 32u64.to_le_bytes()).unwrap();
    let problem = |offset: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        match read(&bytes) {
            Err(ReadError::Tensor { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(problem(0), TensorProblem::Overlap { .. }));
    assert_eq!(problem(33), TensorProblem::Unaligned { offset: 33, alignment: 32 });
    let end = header.data_offset + 64 + 32;
    assert_eq!(problem(64), TensorProblem::OutOfFile { end, file_len: good.len() as u64 });
    assert!(matches!(problem(u64::MAX - 31), TensorProblem::OutOfFile { .. }));
}

#[test]
fn foreign_files_are_named() {
    assert!(matches!(read(b"PK\x03\x04 zip"), Err(ReadError::Magic { .. })));
    assert!(matches!(read(b"GG"), Err(ReadError::Truncated { what: "magic", .. })));
    assert!(matches!(read(b"GGUF\x01\0\0\0"), Err(ReadError::Version { found: 1 })));
    assert!(matches!(read(b"GGUF\0\0\0\x03"), Err(ReadError::BigEndian)));
}

#[test]
fn strings_that_are_not_utf8_survive() {
    let mut metadata = Metadata::new();
    let tokens: StringArray = [&b"\xff\xfe"[..], b"", b"ok"].into_iter().collect();
    metadata.insert("tokens", tokens.clone());
    let header = read(&write_file(&metadata, &[], 0)).unwrap();
    assert_eq!(header.metadata.get("tokens"), Some(&MetaValue::Array(MetaArray::String(tokens))));
}
