//! One expert's matrices, rearranged by one thread for the time of a piece. Experts that are
//! streamed lie in the file's order, in which many rows take several times as long as in the
//! layout of the CPU's kernels; rearranging a matrix costs about what multiplying it with a few
//! rows does.

use super::jobs::Job;
use crate::api;
use crate::layout::stack::Stack;
use crate::layout::{Layout, MatrixShape};
use crate::seam::block::MAX_MATRICES;
use motley_model::gguf::GgmlType;

/// Memory for one expert in the layouts this CPU is fastest in; grows to every shape it meets.
#[derive(Default)]
pub(super) struct Scratch {
    /// By matrix of a block, then by shape.
    known: [Vec<Known>; MAX_MATRICES],
    /// Which of the known ones each matrix of the current block has.
    current: Vec<usize>,
}

struct Known {
    ty: u32,
    ne: [i64; 4],
    /// `None` where the file's order is all there is.
    place: Option<Stack>,
}

impl Scratch {
    /// Room for experts like `ones`: the matrices to compute with.
    pub(super) fn prepare(&mut self, ones: &[api::ggml_tensor]) -> Vec<api::ggml_tensor> {
        self.current.clear();
        let rearranged = ones.iter().zip(&mut self.known).map(|(one, known)| {
            let is_like = |known: &Known| known.ty == one.type_ && known.ne == one.ne;
            let index = known.iter().position(is_like).unwrap_or_else(|| {
                known.push(Known { ty: one.type_, ne: one.ne, place: place(one) });
                known.len() - 1
            });
            self.current.push(index);
            known[index].place.as_ref().map_or(*one, |stack| stack.expert(0))
        });
        rearranged.collect()
    }

    /// The job with its expert's weights rearranged.
    ///
    /// # Safety
    /// Its weights are live, and of the matrices that were last prepared for.
    pub(super) unsafe fn rearrange(&self, job: &Job) -> Job {
        let mut job = *job;
        for ((known, &current), data) in self.known.iter().zip(&self.current).zip(&mut job.weights)
        {
            let Some(stack) = &known[current].place else { continue };
            // SAFETY: by the caller; a matrix of this shape has as many bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(data.cast_const().cast::<u8>(), stack.file_bytes())
            };
            stack.set(0, bytes);
            *data = stack.expert(0).data;
        }
        job
    }
}

/// Memory in the most specialised layout a matrix has.
fn place(one: &api::ggml_tensor) -> Option<Stack> {
    // What ggml has rearranged already carries a mark of its own.
    let is_plain = one.extra.is_null();
    let ty = GgmlType::from_id(one.type_).filter(|_| is_plain)?;
    let shape = MatrixShape { ty, row: one.ne[0] as u32, rows: one.ne[1] as u32 };
    let layout = Layout::SPECIALISED.into_iter().find(|layout| layout.bytes(&shape).is_some())?;
    Stack::new(layout, one)
}
