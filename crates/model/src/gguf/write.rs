//! Writes GGUF: a header with computed offsets, and whole files as a stream. Never seeks, so a
//! file of any size passes through with the memory of one chunk.

use std::collections::HashSet;
use std::io::{self, Write};

use super::format::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT_BYTES, MAGIC, MAX_DIMS, MAX_TENSOR_NAME_BYTES, VERSION,
    align_up,
};
use super::ggml_type::GgmlType;
use super::read::tensor_bytes;
use super::value::{ARRAY_TYPE_ID, MetaArray, MetaValue, Metadata};

/// A tensor to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorDesc {
    /// Name, unique in the file, 1 to 63 bytes.
    pub name: String,
    /// Dimensions, fastest first; at most four.
    pub dims: Vec<u64>,
    pub ty: GgmlType,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// `general.alignment` is not a `u32` power of two.
    #[error("general.alignment must be a u32 and a power of two")]
    Alignment,
    /// A name that readers refuse.
    #[error("{name:?} cannot be a key or tensor name (empty, with NUL, or too long)")]
    Name { name: String },
    /// Two tensors of one name.
    #[error("tensor {name:?} appears twice")]
    Duplicate { name: String },
    /// Rows that are not whole blocks, more than four dimensions, or a size beyond 63 bits.
    #[error("tensor {name:?}: shape {dims:?} does not fit type {ty}")]
    Shape {
        name: String,
        /// Dimensions, fastest first.
        dims: Vec<u64>,
        ty: GgmlType,
    },
    /// Tensors begun in another order than announced, or one begun before the last ended.
    #[error("expected tensor {expected:?} next, not {found:?}")]
    Order {
        /// The tensor due; `None` after the last.
        expected: Option<String>,
        /// The tensor begun; `None` when the file was finished.
        found: Option<String>,
    },
    /// A tensor with more or fewer bytes than its shape says.
    #[error("tensor {name:?} takes {need} bytes, {given} were given")]
    Length {
        name: String,
        /// Bytes its shape takes.
        need: u64,
        /// Bytes given, at least.
        given: u64,
    },
    /// The sink failed.
    #[error("cannot write the GGUF file")]
    Io(#[from] io::Error),
}

/// A header ready to be written, and where the tensors go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedHeader {
    /// Everything before the tensor data, padding included; `bytes.len()` is the data offset.
    pub bytes: Vec<u8>,
    /// Alignment of tensor data.
    pub alignment_bytes: u64,
    /// Per tensor, bytes from the start of the file to its data.
    pub offsets: Vec<u64>,
    pub lens: Vec<u64>,
    /// Length of the whole file: the last tensor's padded end.
    pub file_len: u64,
}

/// Encodes a version 3 header; tensors lie one after another, each padded to the alignment (the
/// only arrangement llama.cpp accepts).
pub fn encode_header(
    metadata: &Metadata,
    tensors: &[TensorDesc],
) -> Result<EncodedHeader, WriteError> {
    let alignment_bytes = alignment(metadata)?;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(tensors.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&(metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata.iter() {
        check_name(key, usize::MAX)?;
        put_string(&mut bytes, key.as_bytes());
        put_value(&mut bytes, value);
    }
    let (mut offsets, mut lens, mut next) = (Vec::new(), Vec::new(), 0u64);
    let mut seen = HashSet::new();
    for tensor in tensors {
        if !seen.insert(tensor.name.as_str()) {
            return Err(WriteError::Duplicate { name: tensor.name.clone() });
        }
        let len = put_tensor(&mut bytes, tensor, next)?;
        offsets.push(next);
        lens.push(len);
        next = padded_end(next, len, alignment_bytes).ok_or_else(|| shape_error(tensor))?;
    }
    let data_offset = align_up(bytes.len() as u64, alignment_bytes).ok_or(WriteError::Alignment)?;
    bytes.resize(data_offset as usize, 0);
    offsets.iter_mut().for_each(|offset| *offset += data_offset);
    Ok(EncodedHeader { bytes, alignment_bytes, offsets, lens, file_len: data_offset + next })
}

/// Where the next tensor begins; kept within 62 bits so that adding the header cannot overflow.
fn padded_end(offset: u64, len: u64, alignment: u64) -> Option<u64> {
    align_up(offset.checked_add(len)?, alignment).filter(|end| *end < 1 << 62)
}

fn alignment(metadata: &Metadata) -> Result<u64, WriteError> {
    match metadata.get(ALIGNMENT_KEY) {
        None => Ok(DEFAULT_ALIGNMENT_BYTES),
        Some(MetaValue::U32(value)) if value.is_power_of_two() => Ok(u64::from(*value)),
        Some(_) => Err(WriteError::Alignment),
    }
}

fn check_name(name: &str, max_bytes: usize) -> Result<(), WriteError> {
    if name.is_empty() || name.contains('\0') || name.len() > max_bytes {
        return Err(WriteError::Name { name: name.to_owned() });
    }
    Ok(())
}

fn shape_error(tensor: &TensorDesc) -> WriteError {
    let TensorDesc { name, dims, ty } = tensor.clone();
    WriteError::Shape { name, dims, ty }
}

fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    bytes.extend_from_slice(&(string.len() as u64).to_le_bytes());
    bytes.extend_from_slice(string);
}

fn put_tensor(bytes: &mut Vec<u8>, tensor: &TensorDesc, offset: u64) -> Result<u64, WriteError> {
    check_name(&tensor.name, MAX_TENSOR_NAME_BYTES)?;
    if tensor.dims.len() > MAX_DIMS {
        return Err(shape_error(tensor));
    }
    let len = tensor_bytes(tensor.ty, &tensor.dims).ok_or_else(|| shape_error(tensor))?;
    put_string(bytes, tensor.name.as_bytes());
    bytes.extend_from_slice(&(tensor.dims.len() as u32).to_le_bytes());
    tensor.dims.iter().for_each(|dim| bytes.extend_from_slice(&dim.to_le_bytes()));
    bytes.extend_from_slice(&tensor.ty.id().to_le_bytes());
    bytes.extend_from_slice(&offset.to_le_bytes());
    Ok(len)
}

fn put_value(bytes: &mut Vec<u8>, value: &MetaValue) {
    bytes.extend_from_slice(&value.type_id().to_le_bytes());
    match value {
        MetaValue::U8(value) => bytes.push(*value),
        MetaValue::I8(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::U16(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::I16(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::U32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::I32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::F32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::Bool(value) => bytes.push(u8::from(*value)),
        MetaValue::U64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::I64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::F64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        MetaValue::String(string) => put_string(bytes, string.as_bytes()),
        MetaValue::Array(array) => put_array(bytes, array),
    }
}

fn put_array(bytes: &mut Vec<u8>, array: &MetaArray) {
    debug_assert_ne!(array.type_id(), ARRAY_TYPE_ID);
    bytes.extend_from_slice(&array.type_id().to_le_bytes());
    bytes.extend_from_slice(&(array.len() as u64).to_le_bytes());
    match array {
        MetaArray::U8(values) => bytes.extend_from_slice(values),
        MetaArray::I8(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::U16(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::I16(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::U32(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::I32(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::F32(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::Bool(values) => bytes.extend(values.iter().map(|v| u8::from(*v))),
        MetaArray::U64(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::I64(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::F64(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        MetaArray::String(strings) => strings.iter().for_each(|string| put_string(bytes, string)),
    }
}

/// Writes a file front to back: the header at once, then each tensor in chunks.
///
/// ```text
/// new ──> begin(name) ──> write(chunk)* ──> end() ──┐
///          ^────────────────────────────────────────┴──> finish()
/// ```
pub struct GgufWriter<W> {
    sink: W,
    header: EncodedHeader,
    names: Vec<String>,
    /// The tensor due or being written.
    current: usize,
    /// Bytes given for the current tensor, once begun.
    given: Option<u64>,
}

impl<W: Write> GgufWriter<W> {
    /// Writes the header to `sink`, which should be buffered.
    pub fn new(
        mut sink: W,
        metadata: &Metadata,
        tensors: &[TensorDesc],
    ) -> Result<Self, WriteError> {
        let header = encode_header(metadata, tensors)?;
        sink.write_all(&header.bytes)?;
        let names = tensors.iter().map(|tensor| tensor.name.clone()).collect();
        Ok(Self { sink, header, names, current: 0, given: None })
    }

    /// The header written, with the place of every tensor.
    pub fn header(&self) -> &EncodedHeader {
        &self.header
    }

    /// Begins the data of `name`, which must be the next tensor of the header.
    pub fn begin(&mut self, name: &str) -> Result<(), WriteError> {
        if self.given.is_some() || self.names.get(self.current).is_none_or(|due| due != name) {
            return Err(self.order_error(Some(name)));
        }
        self.given = Some(0);
        Ok(())
    }

    /// Adds bytes to the tensor begun.
    pub fn write(&mut self, chunk: &[u8]) -> Result<(), WriteError> {
        let Some(given) = self.given else { return Err(self.order_error(None)) };
        let given = given + chunk.len() as u64;
        let need = self.header.lens[self.current];
        if given > need {
            let name = self.names[self.current].clone();
            return Err(WriteError::Length { name, need, given });
        }
        self.sink.write_all(chunk)?;
        self.given = Some(given);
        Ok(())
    }

    /// Ends the tensor begun, which must be complete, and pads it.
    pub fn end(&mut self) -> Result<(), WriteError> {
        let Some(given) = self.given else { return Err(self.order_error(None)) };
        let need = self.header.lens[self.current];
        if given != need {
            let name = self.names[self.current].clone();
            return Err(WriteError::Length { name, need, given });
        }
        let end = self.header.offsets[self.current] + need;
        let next = self.header.offsets.get(self.current + 1);
        let padding = next.copied().unwrap_or(self.header.file_len) - end;
        io::copy(&mut io::Read::take(io::repeat(0), padding), &mut self.sink)?;
        self.current += 1;
        self.given = None;
        Ok(())
    }

    /// Writes all of one tensor.
    pub fn tensor(&mut self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        self.begin(name)?;
        self.write(bytes)?;
        self.end()
    }

    /// Flushes and gives back the sink; every tensor must have been written.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.given.is_some() || self.current < self.names.len() {
            return Err(self.order_error(None));
        }
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn order_error(&self, found: Option<&str>) -> WriteError {
        let expected = self.names.get(self.current).cloned();
        WriteError::Order { expected, found: found.map(str::to_owned) }
    }
}
