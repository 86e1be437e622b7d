//! A block's operations without the block: clones that point at one another and at
//! placeholders, so that they can be built again for any number of rows, on any thread.

use super::refused::Refused;
use crate::api;
use crate::compute::clone::{Clones, PackedShape, Stands, set_packed_shape};
use crate::seam::block::ExpertBlock;
use crate::seam::claim::is_view_op;
use motley_model::{Matrix, TensorPart};

/// What operations of the block read beside rows.
pub(crate) struct TemplatePart {
    pub(crate) matrix: Matrix,
    pub(crate) part: TensorPart,
    /// As llama.cpp has it: type and size of a row.
    pub(crate) ty: api::ggml_type,
    pub(crate) row: i64,
    /// Rows of one expert's matrix; `None` where the tensor is one row per expert.
    pub(crate) rows: Option<i64>,
}

/// Clones of a block for one row, and what they read.
pub(crate) struct Template {
    clones: Clones,
    /// The ids, then a stand-in per part; only their addresses count.
    placeholders: Vec<api::ggml_tensor>,
    pub(crate) parts: Vec<TemplatePart>,
}

// SAFETY: all addresses in it are of its own tensors, on the heap; what it was cloned from is
// not looked at again.
unsafe impl Send for Template {}
// SAFETY: as above, and it is not changed after `of`.
unsafe impl Sync for Template {}

impl Template {
    pub(crate) fn of(block: &ExpertBlock<'_>) -> Result<Self, Refused> {
        Self::with_originals(block).map(|(template, _)| template)
    }

    /// The same with the tensors that stand behind [`Template::parts`], in their order.
    pub(crate) fn with_originals(
        block: &ExpertBlock<'_>,
    ) -> Result<(Self, Vec<*const api::ggml_tensor>), Refused> {
        let (originals, parts) = parts_of(block)?;
        let mut placeholders = vec![empty_tensor(); parts.len() + 1];
        let base = placeholders.as_mut_ptr();
        let stand = |(index, original)| (original, base.wrapping_add(1 + index));
        let tensors: Vec<_> = originals.iter().copied().enumerate().map(stand).collect();
        let ids = |_| base;
        let mut clones = Clones::default();
        let stands = Stands { tensors: &tensors, ids: &ids, outside: false };
        clones.build(block, PackedShape::of(block, 1), &stands)?;
        Ok((Self { clones, placeholders, parts }, originals))
    }

    /// The clones for `rows` rows, reading `ids` and, for each of [`Template::parts`], its
    /// tensor in `weights`. The first is the packed input, the last that is no view the result.
    pub(crate) fn make(
        &self,
        rows: usize,
        ids: *mut api::ggml_tensor,
        weights: &[*mut api::ggml_tensor],
    ) -> Box<[api::ggml_tensor]> {
        let mut tensors: Box<[_]> = self.clones.tensors().into();
        let base = tensors.as_mut_ptr();
        for index in 0..tensors.len() {
            let mut tensor = tensors[index];
            for source in tensor.src.iter_mut().filter(|source| !source.is_null()) {
                *source = match self.place_of(*source) {
                    Place::Clone(index) => base.wrapping_add(index),
                    Place::Ids => ids,
                    Place::Part(index) => weights[index],
                };
            }
            if tensor.view_src.is_null() {
                let width = tensor.ne[0];
                set_packed_shape(&mut tensor, width, rows);
            } else {
                let Place::Clone(parent) = self.place_of(tensor.view_src) else {
                    unreachable!("views are of clones, which `Clones::build` checked");
                };
                let row = tensors[parent].nb[1];
                tensor.view_src = base.wrapping_add(parent);
                tensor.ne = [tensor.ne[0], 1, rows as i64, 1];
                tensor.nb = [tensor.nb[0], row, row, row * rows];
            }
            tensors[index] = tensor;
        }
        tensors
    }

    /// Floats of a result row.
    pub(crate) fn output_width(&self) -> usize {
        let last = self.clones.tensors().iter().rfind(|tensor| !is_view_op(tensor.op));
        last.map_or(0, |tensor| tensor.ne[0] as usize)
    }

    /// Bytes one row takes in all clones together, its id included.
    pub(crate) fn row_bytes(&self) -> usize {
        let owners = self.clones.tensors().iter().filter(|tensor| tensor.view_src.is_null());
        owners.map(|tensor| tensor.nb[1]).sum::<usize>() + size_of::<i32>()
    }

    fn place_of(&self, address: *const api::ggml_tensor) -> Place {
        let index = |tensors: &[api::ggml_tensor]| {
            let range = tensors.as_ptr_range();
            let bytes = (address as usize).wrapping_sub(range.start as usize);
            range.contains(&address).then_some(bytes / size_of::<api::ggml_tensor>())
        };
        match (index(self.clones.tensors()), index(&self.placeholders)) {
            (Some(index), _) => Place::Clone(index),
            (None, Some(0)) => Place::Ids,
            (None, Some(index)) => Place::Part(index - 1),
            (None, None) => unreachable!("`Clones::build` refuses tensors from outside"),
        }
    }
}

/// What an address in a template means.
enum Place {
    Clone(usize),
    Ids,
    Part(usize),
}

/// The weights and side tensors of a block, as they are and as data.
fn parts_of(
    block: &ExpertBlock<'_>,
) -> Result<(Vec<*const api::ggml_tensor>, Vec<TemplatePart>), Refused> {
    let (mut originals, mut parts) = (Vec::new(), Vec::new());
    for weight in block.matrices() {
        let matrix = weight.matrix().ok_or(Refused::UnknownMatrix)?;
        let tensor = weight.tensor_copy();
        let (ty, [row, rows, ..]) = (tensor.type_, tensor.ne);
        originals.push(weight.raw());
        parts.push(TemplatePart { matrix, part: TensorPart::Weight, ty, row, rows: Some(rows) });
    }
    for (original, matrix, part) in block.side_tensors() {
        // SAFETY: side tensors are live as long as the model.
        let (ty, row) = unsafe { ((*original).type_, (*original).ne[0]) };
        originals.push(original);
        parts.push(TemplatePart { matrix, part, ty, row, rows: None });
    }
    Ok((originals, parts))
}

pub(crate) fn empty_tensor() -> api::ggml_tensor {
    // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
    unsafe { std::mem::zeroed() }
}
