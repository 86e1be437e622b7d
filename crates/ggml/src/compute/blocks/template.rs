//! A block's operations for the rows of one expert: `[n, rows]` instead of `[n, k, tokens]`, with
//! `MUL_MAT` in place of `MUL_MAT_ID`. Made once per block, used for every piece of it.

use super::jobs::{Job, Jobs};
use crate::api;
use crate::api::numbers::{op_of, op_there};
use crate::compute::clone::{CloneError, Clones, PackedShape, Stands};
use crate::compute::packed::{Line, place_data};
use crate::seam::block::{ExpertBlock, MAX_MATRICES};
use crate::seam::claim::is_view_op;
use std::ptr::null_mut;

/// Clones of one block, ready for any of its pieces. Holds addresses of itself while a block is
/// computed: prepared again for the next one.
pub(super) struct Template {
    clones: Clones,
    /// One expert of each matrix.
    weights: Box<[api::ggml_tensor; MAX_MATRICES]>,
    /// The expert of each row, for biases.
    ids: Box<api::ggml_tensor>,
    ids_values: Vec<i32>,
    data: Vec<Line>,
}

impl Template {
    pub(super) fn new() -> Self {
        // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
        let none: api::ggml_tensor = unsafe { std::mem::zeroed() };
        Self {
            clones: Clones::default(),
            weights: Box::new([none; MAX_MATRICES]),
            ids: Box::new(api::ggml_tensor { type_: api::GGML_TYPE_I32, ..none }),
            ids_values: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Clones `block`; `ones` are the matrices of one expert, without data.
    pub(super) fn prepare(
        &mut self,
        block: &ExpertBlock<'_>,
        ones: &[api::ggml_tensor],
    ) -> Result<(), CloneError> {
        self.weights[..ones.len()].copy_from_slice(ones);
        let originals = block.matrices().map(|matrix| matrix.raw());
        let tensors: Vec<_> =
            originals.zip(self.weights.iter_mut()).map(|(raw, one)| (raw, &raw mut *one)).collect();
        let ids = &raw mut *self.ids;
        let stands = Stands { tensors: &tensors, ids: &|_| ids, outside: true };
        self.clones.build(block, PackedShape::of(block, 1), &stands)?;
        for tensor in self.clones.tensors_mut() {
            if op_of(tensor.op) == api::GGML_OP_MUL_MAT_ID {
                tensor.op = op_there(api::GGML_OP_MUL_MAT);
                tensor.src[2] = null_mut();
                tensor.op_params.fill(0);
            }
        }
        Ok(())
    }

    /// The clones with the rows and weights of `job`, its rows gathered. A single row is read and
    /// written where it lies.
    pub(super) fn load(&mut self, block: &ExpertBlock<'_>, jobs: &Jobs, job: &Job) {
        for (one, &data) in self.weights.iter_mut().zip(&job.weights) {
            one.data = data;
        }
        self.ids_values.clear();
        self.ids_values.resize(job.rows, job.expert as i32);
        self.ids.data = self.ids_values.as_mut_ptr().cast();
        set_shape(&mut self.ids, job.rows as i64, 1);
        let tensors = self.clones.tensors_mut();
        for index in 0..tensors.len() {
            let (before, rest) = tensors.split_at_mut(index);
            shape_for(&mut rest[0], before, job.rows);
        }
        place_data(tensors, &mut self.data);
        match jobs.rows(job) {
            &[(token, slot)] => self.use_in_place(block, token as usize, slot as usize),
            rows => {
                let (input, width) = (tensors[0].data.cast::<f32>(), block.hidden_width());
                for (index, &(token, slot)) in rows.iter().enumerate() {
                    let row = block.hidden_row(token as usize, slot as usize);
                    // SAFETY: the input has `rows` rows of this width, ours alone.
                    unsafe {
                        let target = input.add(index * width);
                        std::ptr::copy_nonoverlapping(row.as_ptr(), target, row.len());
                    }
                }
            }
        }
    }

    /// Puts the results of `job` in their places.
    ///
    /// # Safety
    /// The clones were computed for `job`, and nobody else writes its rows.
    pub(super) unsafe fn store(&self, block: &ExpertBlock<'_>, jobs: &Jobs, job: &Job) {
        let rows = jobs.rows(job);
        let output = self.output();
        if rows.len() == 1 {
            return;
        }
        for (index, &(token, slot)) in rows.iter().enumerate() {
            // SAFETY: the output has as many rows as the job; a row of the block belongs to one job.
            unsafe {
                let row = output.data.byte_add(index * output.nb[1]).cast::<f32>();
                let place = block.output_row_place(token as usize, slot as usize);
                std::ptr::copy_nonoverlapping(row, place, output.ne[0] as usize);
            }
        }
    }

    /// What is computed, in order, without views.
    pub(super) fn nodes(&mut self) -> impl Iterator<Item = *mut api::ggml_tensor> {
        let tensors = self.clones.tensors_mut().iter_mut();
        tensors.filter(|tensor| !is_view_op(tensor.op)).map(|tensor| &raw mut *tensor)
    }

    /// The last clone that is no view.
    fn output(&self) -> &api::ggml_tensor {
        let computed = |tensor: &&api::ggml_tensor| !is_view_op(tensor.op);
        self.clones.tensors().iter().rfind(computed).expect("a block ends with a product")
    }

    /// One row is contiguous where it is, coming and going.
    fn use_in_place(&mut self, block: &ExpertBlock<'_>, token: usize, slot: usize) {
        let tensors = self.clones.tensors_mut();
        tensors[0].data = block.hidden_row(token, slot).as_ptr().cast_mut().cast();
        let computed = |tensor: &&mut api::ggml_tensor| !is_view_op(tensor.op);
        let output = tensors.iter_mut().rfind(computed).expect("a block ends with a product");
        output.data = block.output_row_place(token, slot).cast();
    }
}

/// `[width, rows]`; a view keeps the stride of its parent, which is among `before`.
fn shape_for(tensor: &mut api::ggml_tensor, before: &[api::ggml_tensor], rows: usize) {
    if tensor.view_src.is_null() {
        return set_shape(tensor, tensor.ne[0], rows as i64);
    }
    let is_parent = |parent: &&api::ggml_tensor| std::ptr::eq(*parent, tensor.view_src);
    let stride = before.iter().find(is_parent).map_or(tensor.nb[1], |parent| parent.nb[1]);
    tensor.ne = [tensor.ne[0], rows as i64, 1, 1];
    tensor.nb = [tensor.nb[0], stride, stride * rows, stride * rows];
}

/// Contiguous values of four bytes.
fn set_shape(tensor: &mut api::ggml_tensor, width: i64, rows: i64) {
    let row = size_of::<f32>() * width as usize;
    tensor.ne = [width, rows, 1, 1];
    tensor.nb = [size_of::<f32>(), row, row * rows as usize, row * rows as usize];
}
