//! Presents one or several GGUF files as one virtual file with a header written anew.
//!
//! What llama.cpp parses is this header and no byte of the original ones, so hostile headers meet
//! Rust first. Tensor data is not touched: extents say which file holds it.

use super::read::GgufHeader;
use super::write::{TensorDesc, WriteError, encode_header};

/// Metadata keys that belong to a split file and not to the model.
const SPLIT_PREFIX: &str = "split.";

/// A range of the virtual file that a real file holds: the data of one tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where the tensor begins in the virtual file.
    pub virtual_offset: u64,
    /// Bytes of data; never 0.
    pub len: u64,
    /// Index of the real file.
    pub file: usize,
    /// Where the tensor begins in that file.
    pub file_offset: u64,
    /// Index of the tensor, counted over all files in order.
    pub tensor: usize,
}

/// What stands at an offset of the virtual file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Header bytes from here to the header's end.
    Header(&'a [u8]),
    /// Tensor data.
    Data {
        /// The tensor's whole extent.
        extent: &'a Extent,
        /// How far into the extent the offset lies.
        skip: u64,
    },
    /// This many zero bytes.
    Padding(u64),
    /// Nothing: the offset is at or past the end.
    End,
}

impl Piece<'_> {
    /// Bytes from the offset to the piece's end.
    pub fn len(&self) -> u64 {
        match self {
            Self::Header(bytes) => bytes.len() as u64,
            Self::Data { extent, skip } => extent.len - skip,
            Self::Padding(len) => *len,
            Self::End => 0,
        }
    }

    /// Whether this is the end.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why files cannot be presented as one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// No file was given.
    #[error("a model needs at least one file")]
    Empty,
    /// The joint header cannot be written, such as for a tensor that two files hold.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// One virtual file over real ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualLayout {
    /// Everything before the data, padding included.
    pub header: Vec<u8>,
    /// Where data begins: the header's length.
    pub data_offset: u64,
    pub len: u64,
    /// Tensor data by rising virtual offset; between them is padding.
    pub extents: Vec<Extent>,
}

/// Joins the files of one model in order: metadata of the first without its `split.*` keys, and
/// every tensor in file order, laid out without gaps.
pub fn rewrite_header(files: &[GgufHeader]) -> Result<VirtualLayout, LayoutError> {
    let mut metadata = files.first().ok_or(LayoutError::Empty)?.metadata.clone();
    metadata.retain(|key| !key.starts_with(SPLIT_PREFIX));
    let sources: Vec<_> = files
        .iter()
        .enumerate()
        .flat_map(|(file, header)| header.tensors.iter().map(move |tensor| (file, tensor)))
        .collect();
    let descs: Vec<_> = sources
        .iter()
        .map(|(_, tensor)| TensorDesc {
            name: tensor.name.clone(),
            dims: tensor.dims.clone(),
            ty: tensor.ty,
        })
        .collect();
    let encoded = encode_header(&metadata, &descs)?;
    let extents = sources
        .iter()
        .enumerate()
        .filter(|(_, (_, tensor))| tensor.len_bytes > 0)
        .map(|(index, (file, tensor))| Extent {
            virtual_offset: encoded.offsets[index],
            len: tensor.len_bytes,
            file: *file,
            file_offset: tensor.file_offset,
            tensor: index,
        })
        .collect();
    let data_offset = encoded.bytes.len() as u64;
    Ok(VirtualLayout { header: encoded.bytes, data_offset, len: encoded.file_len, extents })
}

impl VirtualLayout {
    /// What stands at `offset`, by binary search.
    pub fn piece_at(&self, offset: u64) -> Piece<'_> {
        if offset < self.data_offset {
            return Piece::Header(&self.header[offset as usize..]);
        }
        if offset >= self.len {
            return Piece::End;
        }
        let after = self.extents.partition_point(|extent| extent.virtual_offset <= offset);
        if let Some(extent) = after.checked_sub(1).map(|index| &self.extents[index]) {
            let skip = offset - extent.virtual_offset;
            if skip < extent.len {
                return Piece::Data { extent, skip };
            }
        }
        let next = self.extents.get(after).map_or(self.len, |extent| extent.virtual_offset);
        Piece::Padding(next - offset)
    }
}
