//! Reads a GGUF header: limits first, then metadata, then tensor infos. Never touches tensor data.
//!
//! Safe on any bytes: every count is checked against its limit and against what the file can
//! still hold before memory is taken for it.

use std::collections::HashSet;
use std::io::{Read, Seek};

use super::error::{ReadError, TensorProblem};
use super::format::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT_BYTES, MAGIC, MAX_DIMS, align_up};
use super::ggml_type::GgmlType;
use super::limits::GgufLimits;
use super::source::Source;
use super::value::{ARRAY_TYPE_ID, MetaArray, MetaValue, Metadata, STRING_TYPE_ID, StringArray};

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, unique in the file.
    pub name: String,
    /// Dimensions, fastest first; at most four.
    pub dims: Vec<u64>,
    pub ty: GgmlType,
    /// Bytes from the start of the file to the data.
    pub file_offset: u64,
    pub len_bytes: u64,
}

/// A validated header.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufHeader {
    /// Format version, 2 or 3.
    pub version: u32,
    /// Alignment of tensor data, a power of two.
    pub alignment_bytes: u64,
    pub metadata: Metadata,
    /// Tensors in file order; inside the file, aligned, disjoint, names unique.
    pub tensors: Vec<TensorInfo>,
    /// Where tensor data begins.
    pub data_offset: u64,
    pub file_len: u64,
}

/// Least bytes one metadata entry takes: key length, one byte of key, type, one byte of value.
const MIN_ENTRY_BYTES: u64 = 8 + 1 + 4 + 1;
/// Least bytes one tensor info takes: name length, one byte of name, dimensions, type, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 1 + 4 + 4 + 8;

impl GgufHeader {
    /// Reads and validates the header of `file` from its beginning.
    pub fn read(file: impl Read + Seek, limits: &GgufLimits) -> Result<Self, ReadError> {
        let mut source = Source::new(file, limits)?;
        let version = read_version(&mut source)?;
        let tensor_count = source.count("tensor count", limits.max_tensors)?;
        let entry_count = source.count("metadata count", limits.max_metadata_entries)?;
        let metadata = read_metadata(&mut source, entry_count, limits)?;
        let alignment_bytes = alignment(&metadata, source.offset(), limits)?;
        let raw = read_tensors(&mut source, tensor_count, limits)?;
        let data_offset = align_up(source.offset(), alignment_bytes).unwrap_or(u64::MAX);
        let file_len = source.file_len();
        let place = Place { alignment: alignment_bytes, data_offset, file_len };
        let tensors = raw.into_iter().map(|tensor| place.resolve(tensor)).collect::<Result<_, _>>();
        let tensors: Vec<TensorInfo> = tensors?;
        refuse_overlap(&tensors)?;
        Ok(Self { version, alignment_bytes, metadata, tensors, data_offset, file_len })
    }
}

fn read_version<R: Read + Seek>(source: &mut Source<R>) -> Result<u32, ReadError> {
    let found = source.bytes("magic")?;
    if found != MAGIC {
        return Err(ReadError::Magic { found });
    }
    match source.u32("version")? {
        version @ (2 | 3) => Ok(version),
        found if found & 0xffff == 0 && found != 0 => Err(ReadError::BigEndian),
        found => Err(ReadError::Version { found }),
    }
}

fn read_metadata<R: Read + Seek>(
    source: &mut Source<R>,
    count: u64,
    limits: &GgufLimits,
) -> Result<Metadata, ReadError> {
    source.ensure_items("metadata", count, MIN_ENTRY_BYTES)?;
    let mut metadata = Metadata::new();
    for _ in 0..count {
        let offset = source.offset();
        let key = source.name("metadata key", limits.max_key_bytes)?;
        let value = read_value(source, limits)?;
        if metadata.insert(&key, value).is_some() {
            return Err(ReadError::Duplicate { what: "metadata key", name: key, offset });
        }
    }
    Ok(metadata)
}

fn read_value<R: Read + Seek>(
    source: &mut Source<R>,
    limits: &GgufLimits,
) -> Result<MetaValue, ReadError> {
    const WHAT: &str = "metadata value";
    let offset = source.offset();
    Ok(match source.u32("metadata type")? {
        0 => MetaValue::U8(source.bytes(WHAT).map(u8::from_le_bytes)?),
        1 => MetaValue::I8(source.bytes(WHAT).map(i8::from_le_bytes)?),
        2 => MetaValue::U16(source.bytes(WHAT).map(u16::from_le_bytes)?),
        3 => MetaValue::I16(source.bytes(WHAT).map(i16::from_le_bytes)?),
        4 => MetaValue::U32(source.u32(WHAT)?),
        5 => MetaValue::I32(source.bytes(WHAT).map(i32::from_le_bytes)?),
        6 => MetaValue::F32(source.bytes(WHAT).map(f32::from_le_bytes)?),
        7 => MetaValue::Bool(as_bool(source.offset(), source.bytes(WHAT)?)?),
        STRING_TYPE_ID => MetaValue::String(source.string(WHAT, limits.max_string_bytes)?.into()),
        ARRAY_TYPE_ID => MetaValue::Array(read_array(source, limits)?),
        10 => MetaValue::U64(source.u64(WHAT)?),
        11 => MetaValue::I64(source.bytes(WHAT).map(i64::from_le_bytes)?),
        12 => MetaValue::F64(source.bytes(WHAT).map(f64::from_le_bytes)?),
        id => return Err(ReadError::Invalid { what: "metadata type", offset, value: id.into() }),
    })
}

fn read_array<R: Read + Seek>(
    source: &mut Source<R>,
    limits: &GgufLimits,
) -> Result<MetaArray, ReadError> {
    let offset = source.offset();
    let id = source.u32("array type")?;
    let len = source.count("array length", limits.max_array_len)?;
    Ok(match id {
        0 => MetaArray::U8(numbers(source, len, u8::from_le_bytes)?),
        1 => MetaArray::I8(numbers(source, len, i8::from_le_bytes)?),
        2 => MetaArray::U16(numbers(source, len, u16::from_le_bytes)?),
        3 => MetaArray::I16(numbers(source, len, i16::from_le_bytes)?),
        4 => MetaArray::U32(numbers(source, len, u32::from_le_bytes)?),
        5 => MetaArray::I32(numbers(source, len, i32::from_le_bytes)?),
        6 => MetaArray::F32(numbers(source, len, f32::from_le_bytes)?),
        7 => {
            let start = source.offset();
            let bytes = numbers(source, len, |byte: [u8; 1]| byte)?;
            let bools = bytes.into_iter().map(|byte| as_bool(start, byte));
            MetaArray::Bool(bools.collect::<Result<_, _>>()?)
        }
        STRING_TYPE_ID => MetaArray::String(strings(source, len, limits)?),
        10 => MetaArray::U64(numbers(source, len, u64::from_le_bytes)?),
        11 => MetaArray::I64(numbers(source, len, i64::from_le_bytes)?),
        12 => MetaArray::F64(numbers(source, len, f64::from_le_bytes)?),
        id => return Err(ReadError::Invalid { what: "array type", offset, value: id.into() }),
    })
}

/// `len` numbers of `N` bytes; the space is checked against the file before it is taken.
fn numbers<R: Read + Seek, T, const N: usize>(
    source: &mut Source<R>,
    len: u64,
    parse: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>, ReadError> {
    const WHAT: &str = "array elements";
    source.ensure_items(WHAT, len, N as u64)?;
    let mut values = Vec::with_capacity(len as usize);
    for _ in 0..len {
        values.push(parse(source.bytes(WHAT)?));
    }
    Ok(values)
}

fn strings<R: Read + Seek>(
    source: &mut Source<R>,
    len: u64,
    limits: &GgufLimits,
) -> Result<StringArray, ReadError> {
    const WHAT: &str = "array string";
    source.ensure_items(WHAT, len, 8)?;
    let mut strings = StringArray::new();
    for _ in 0..len {
        let bytes = source.count(WHAT, limits.max_string_bytes)?;
        source.ensure(WHAT, bytes)?;
        strings.push_with(bytes as usize, |room| source.fill(WHAT, room))?;
    }
    Ok(strings)
}

fn as_bool(offset: u64, [byte]: [u8; 1]) -> Result<bool, ReadError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        byte => Err(ReadError::Invalid { what: "truth value", offset, value: byte.into() }),
    }
}

fn alignment(metadata: &Metadata, offset: u64, limits: &GgufLimits) -> Result<u64, ReadError> {
    let what = ALIGNMENT_KEY;
    match metadata.get(ALIGNMENT_KEY) {
        None => Ok(DEFAULT_ALIGNMENT_BYTES),
        Some(MetaValue::U32(value)) if value.is_power_of_two() => {
            let (value, limit) = (u64::from(*value), limits.max_alignment_bytes);
            if value > limit {
                return Err(ReadError::Limit { what, offset, value, limit });
            }
            Ok(value)
        }
        Some(other) => {
            Err(ReadError::Invalid { what, offset, value: other.as_u64().unwrap_or(u64::MAX) })
        }
    }
}

/// A tensor info as it stands in the file, before its place is checked.
struct RawTensor {
    name: String,
    dims: Vec<u64>,
    type_id: u32,
    offset: u64,
}

fn read_tensors<R: Read + Seek>(
    source: &mut Source<R>,
    count: u64,
    limits: &GgufLimits,
) -> Result<Vec<RawTensor>, ReadError> {
    source.ensure_items("tensor infos", count, MIN_TENSOR_BYTES)?;
    let max_dims = limits.max_dims.min(MAX_DIMS as u32);
    let mut seen = HashSet::new();
    let mut tensors = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let at = source.offset();
        let name = source.name("tensor name", limits.max_tensor_name_bytes)?;
        if !seen.insert(name.clone()) {
            return Err(ReadError::Duplicate { what: "tensor name", name, offset: at });
        }
        let offset = source.offset();
        let n_dims = source.u32("tensor dimensions")?;
        if n_dims > max_dims {
            let (value, limit) = (n_dims.into(), max_dims.into());
            return Err(ReadError::Limit { what: "tensor dimensions", offset, value, limit });
        }
        let dims = (0..n_dims).map(|_| source.u64("tensor dimension")).collect::<Result<_, _>>()?;
        let type_id = source.u32("tensor type")?;
        let offset = source.u64("tensor offset")?;
        tensors.push(RawTensor { name, dims, type_id, offset });
    }
    Ok(tensors)
}

/// Where tensors of one file may lie.
struct Place {
    alignment: u64,
    data_offset: u64,
    file_len: u64,
}

impl Place {
    fn resolve(&self, raw: RawTensor) -> Result<TensorInfo, ReadError> {
        match self.check(&raw) {
            Ok((ty, file_offset, len_bytes)) => {
                Ok(TensorInfo { name: raw.name, dims: raw.dims, ty, file_offset, len_bytes })
            }
            Err(problem) => Err(ReadError::Tensor { name: raw.name, problem }),
        }
    }

    /// Type, place in the file and length of a tensor that holds.
    fn check(&self, raw: &RawTensor) -> Result<(GgmlType, u64, u64), TensorProblem> {
        let ty = GgmlType::from_id(raw.type_id).ok_or(TensorProblem::Type { id: raw.type_id })?;
        let len = tensor_bytes(ty, &raw.dims)
            .ok_or_else(|| TensorProblem::Shape { dims: raw.dims.clone(), ty })?;
        if !raw.offset.is_multiple_of(self.alignment) {
            let alignment = self.alignment;
            return Err(TensorProblem::Unaligned { offset: raw.offset, alignment });
        }
        let start = self.data_offset.saturating_add(raw.offset);
        let end = start.saturating_add(len);
        if end > self.file_len {
            return Err(TensorProblem::OutOfFile { end, file_len: self.file_len });
        }
        Ok((ty, start, len))
    }
}

/// Bytes of a tensor whose element count also fits ggml's signed 64 bits, as llama.cpp demands.
pub(super) fn tensor_bytes(ty: GgmlType, dims: &[u64]) -> Option<u64> {
    let fits = |value: u64| i64::try_from(value).is_ok();
    let mut elements = 1u64;
    for dim in dims {
        elements = elements.checked_mul((*dim).max(1)).filter(|count| fits(*count))?;
    }
    ty.tensor_bytes(dims).filter(|bytes| fits(*bytes))
}

fn refuse_overlap(tensors: &[TensorInfo]) -> Result<(), ReadError> {
    let mut order: Vec<&TensorInfo> =
        tensors.iter().filter(|tensor| tensor.len_bytes > 0).collect();
    order.sort_by_key(|tensor| tensor.file_offset);
    for pair in order.windows(2) {
        if pair[0].file_offset + pair[0].len_bytes > pair[1].file_offset {
            let problem = TensorProblem::Overlap { other: pair[0].name.clone() };
            return Err(ReadError::Tensor { name: pair[1].name.clone(), problem });
        }
    }
    Ok(())
}
