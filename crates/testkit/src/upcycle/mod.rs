//! A mixture of experts that computes what a dense `llama` model computes, from its own bytes.
//!
//! Every expert is the dense FFN with its neurons in another order: rows of gate and up, columns
//! of down, moved in blocks wide enough that quantised blocks stay whole, so no weight is ever
//! dequantised. The order of neurons does not change an FFN, and this architecture's router
//! weights sum to one (`build_moe_ffn` of llama.cpp, `norm_w` for `llama`), so any choice of
//! experts gives the dense result. Yet all experts differ as bytes: a mixed-up matrix shows, and
//! routing follows real hidden states.
//!
//! In reading order:
//! - [`layout`]: the new header: which dense tensor becomes what.
//! - [`permute`]: moves rows and column blocks.

pub mod layout;
pub mod permute;
mod request;

pub use request::Request;

use crate::gguf_source::read_header;
use crate::output::{Progress, WrittenModel, new_file};
use crate::synth::fill::{Filler, seeded};
use anyhow::{Context, Result};
use layout::{FfnMatrix, Layout, Source};
use motley_model::gguf::{GgmlType, GgufHeader, GgufWriter, TensorInfo};
use permute::permutation;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The mixture in the cache folder, written if missing.
pub fn ensure_cached(dense: &Path, request: &Request) -> Result<PathBuf> {
    let path = crate::cache::models_folder()?.join(request.file_name(dense));
    if !path.exists() {
        upcycle(dense, request, &path, &mut |_| {})?;
    }
    Ok(path)
}

/// Writes the mixture to `out`; memory is one dense matrix.
pub fn upcycle(
    dense: &Path,
    request: &Request,
    out: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<WrittenModel> {
    let header = read_header(dense)?;
    let layout = Layout::new(&header, request)
        .with_context(|| format!("{} cannot be upcycled", dense.display()))?;
    let mut writing = Writing { file: File::open(dense)?, header: &header, request, progress };
    let output = new_file(out)?;
    (writing.progress)(Progress::Total(layout.data_bytes()));
    writing.all(&layout, BufWriter::new(output.as_file()))?;
    let bytes = output.as_file().metadata()?.len();
    output.persist(out).with_context(|| format!("cannot name {}", out.display()))?;
    Ok(WrittenModel { path: out.to_owned(), bytes, tensors: layout.tensors.len() })
}

/// One run over the dense file.
struct Writing<'a> {
    file: File,
    header: &'a GgufHeader,
    request: &'a Request,
    progress: &'a mut dyn FnMut(Progress),
}

impl Writing<'_> {
    fn all<W: Write>(&mut self, layout: &Layout, sink: W) -> Result<()> {
        let descs: Vec<_> = layout.tensors.iter().map(|tensor| tensor.desc.clone()).collect();
        let mut writer = GgufWriter::new(sink, &layout.metadata, &descs)?;
        for tensor in &layout.tensors {
            writer.begin(&tensor.desc.name)?;
            match tensor.source {
                Source::Copy { index } => self.copy(index, &mut writer)?,
                Source::Experts { index, layer, part } => {
                    self.experts(index, layer, part, &mut writer)?;
                }
                Source::Router { layer, norm } => self.router(layer, norm, &mut writer)?,
            }
            writer.end()?;
        }
        writer.finish()?;
        Ok(())
    }

    fn copy<W: Write>(&mut self, index: usize, writer: &mut GgufWriter<W>) -> Result<()> {
        let TensorInfo { file_offset, len_bytes, .. } = self.header.tensors[index];
        self.file.seek(SeekFrom::Start(file_offset))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut left = len_bytes;
        while left > 0 {
            let len = left.min(CHUNK_BYTES as u64) as usize;
            self.file.read_exact(&mut chunk[..len])?;
            self.write(&chunk[..len], writer)?;
            left -= len as u64;
        }
        Ok(())
    }

    fn experts<W: Write>(
        &mut self,
        index: usize,
        layer: u64,
        part: FfnMatrix,
        writer: &mut GgufWriter<W>,
    ) -> Result<()> {
        let dense = self.read(index)?;
        let info = &self.header.tensors[index];
        let matrix = permute::Matrix::new(info.ty, &info.dims, &dense);
        let blocks = matrix.neurons(part) / self.request.block;
        for expert in 0..self.request.experts {
            let order = permutation(self.request.seed, layer, expert, blocks);
            let bytes = matrix.permuted(part, self.request.block, &order);
            self.write(&bytes, writer)?;
        }
        Ok(())
    }

    /// Router rows such that logits spread by about one behind the layer's norm.
    fn router<W: Write>(
        &mut self,
        layer: u64,
        norm: usize,
        writer: &mut GgufWriter<W>,
    ) -> Result<()> {
        let norm = self.read(norm)?;
        let hidden = norm.len() / 4;
        let weight = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let square: f32 = norm.chunks_exact(4).map(weight).map(|w| w * w).sum();
        let filler = Filler::new(GgmlType::F32, 1.0 / square.sqrt().max(f32::MIN_POSITIVE));
        let filler = filler.context("F32 has a generator")?;
        let mut rng = seeded(self.request.seed, &format!("router of layer {layer}"));
        let mut row = vec![0; hidden * 4];
        for _ in 0..self.request.experts {
            filler.fill(&mut rng, &mut row);
            self.write(&row, writer)?;
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> Result<Vec<u8>> {
        let TensorInfo { file_offset, len_bytes, .. } = self.header.tensors[index];
        let mut bytes = vec![0; usize::try_from(len_bytes)?];
        self.file.seek(SeekFrom::Start(file_offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn write<W: Write>(&mut self, bytes: &[u8], writer: &mut GgufWriter<W>) -> Result<()> {
        (self.progress)(Progress::More(bytes.len() as u64));
        Ok(writer.write(bytes)?)
    }
}

#[cfg(test)]
mod tests;
