//! Which experts' bytes are in memory, for models whose experts were left on disk.
//! An expert is read once, into the place reserved for it, and stays.

use motley_ggml::{BlockError, ExpertBlock};
use motley_model::{FileRange, ModelSpec};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Expert bytes of one model.
pub(crate) struct Residency {
    spec: Arc<ModelSpec>,
    files: Vec<File>,
    /// `[layer][expert]`: whether all matrices are in memory.
    resident: Vec<Vec<bool>>,
}

impl Residency {
    /// Nothing is resident yet; `files` in the order of the spec.
    pub(crate) fn new(spec: Arc<ModelSpec>, files: Vec<File>) -> Self {
        let resident = spec
            .layers
            .iter()
            .map(|layer| vec![false; layer.as_ref().map_or(0, |layer| layer.experts as usize)])
            .collect();
        Self { spec, files, resident }
    }

    /// Brings every matrix of `expert` in `block`'s layer into memory.
    pub(crate) fn ensure(
        &mut self,
        block: &mut ExpertBlock<'_>,
        expert: u32,
    ) -> Result<(), BlockError> {
        let layer = block.layer();
        let known = self.resident.get_mut(layer as usize).and_then(|l| l.get_mut(expert as usize));
        let Some(flag) = known else {
            let reason = format!("the router chose expert {expert}, which the file does not have");
            return Err(BlockError { layer, reason });
        };
        if *flag {
            return Ok(());
        }
        for mut matrix in block.matrices() {
            let Some(range) = matrix.matrix().and_then(|m| self.spec.locate(layer, expert, m))
            else {
                continue;
            };
            if let Some(place) = matrix.reserved_bytes(expert) {
                read(&self.files, range, place)
                    .map_err(|error| BlockError { layer, reason: read_error(expert, &error) })?;
            }
        }
        *flag = true;
        Ok(())
    }
}

fn read(files: &[File], range: FileRange, place: &mut [u8]) -> io::Result<()> {
    debug_assert_eq!(place.len() as u64, range.len_bytes);
    files[range.file].read_exact_at(place, range.offset)
}

fn read_error(expert: u32, error: &io::Error) -> String {
    format!("cannot read expert {expert} from the model file: {error}")
}
