//! A device of ggml's behind the executor's traits: its compute half, its copy half, and the CPU
//! beside it for one block. Buffers are numbers to the executor; here each holds an expert.

use super::units::{CopyOrder, Cpu, CpuOrder, Device, DeviceOrder, Flow, Link, UnitFailed};
use crate::blocks::way::way_of;
use motley_ggml::gpu::{ComputeLane, CopyLane, GpuBlock, GpuExpert, GpuTask, GpuUnit};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{Matrix, TensorPart};
use motley_plan::ExpertKernels;
use motley_store::{FilledExpert, MappedExperts};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is in each buffer; shared between the two halves.
#[derive(Clone)]
pub(super) struct Held(Arc<Mutex<Vec<Option<GpuExpert>>>>);

impl Held {
    pub(super) fn new(buffers: u32) -> Self {
        Self(Arc::new(Mutex::new(vec![None; buffers as usize])))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<GpuExpert>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The compute half.
pub struct DeviceUnit {
    pub(super) unit: GpuUnit,
    pub(super) lane: ComputeLane,
    pub(super) held: Held,
}

impl Device for DeviceUnit {
    type Block = GpuBlock;
    type Rows = GpuTask;

    fn compute(
        &mut self,
        block: &GpuBlock,
        orders: &[DeviceOrder],
    ) -> Result<(GpuTask, Flow), UnitFailed> {
        let mut experts = Vec::with_capacity(orders.len());
        for order in orders {
            let expert = self.held.lock()[order.buffer as usize].clone();
            let expert = expert.ok_or_else(|| UnitFailed(format!("{} has no bytes", order.key)))?;
            experts.push((u32::from(order.key.expert), expert));
        }
        let named: Vec<_> = experts.iter().map(|(number, expert)| (*number, expert)).collect();
        let task = self.unit.prepare_experts(block, &named);
        let mut task = task.map_err(|refused| UnitFailed(refused.to_string()))?;
        let flow = flow(task.run(&mut self.lane))?;
        Ok((task, flow))
    }
}

/// The copy half.
pub struct DeviceLink {
    pub(super) unit: GpuUnit,
    pub(super) lane: CopyLane,
    pub(super) held: Held,
    /// Where experts lie in the model's files.
    pub(super) files: MappedExperts,
}

impl Link for DeviceLink {
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        // Whoever was there leaves first: the device has no slot to spare.
        drop(self.held.lock()[order.buffer as usize].take());
        let (layer, expert) = (u32::from(order.key.layer), u32::from(order.key.expert));
        let full = || UnitFailed(format!("the device has no slot for {}", order.key));
        let lease = self.unit.lease(layer).ok_or_else(full)?;
        let in_files = self.files.parts(layer, expert);
        let filled = match &order.from {
            None => self.lane.fill(lease, in_files),
            // Read from disk are weights; biases and scales are small and come from the mapping.
            Some(read) => {
                let small = in_files.filter(|(_, part, _)| *part != TensorPart::Weight);
                self.lane.fill(lease, weights(read).chain(small))
            }
        };
        let filled = filled.map_err(|error| UnitFailed(error.to_string()))?;
        self.held.lock()[order.buffer as usize] = Some(filled);
        Ok(())
    }
}

fn weights(read: &FilledExpert) -> impl Iterator<Item = (Matrix, TensorPart, &[u8])> {
    read.iter().map(|(matrix, part, slot)| (matrix, part, slot.bytes()))
}

/// The CPU for one block.
pub struct BlockCpu<'a, 'g> {
    /// The block; rows devices compute are left alone.
    pub block: &'a mut ExpertBlock<'g>,
    pub cpu: &'a mut CpuUnit,
    /// How it computes.
    pub kernels: &'a ExpertKernels,
}

impl Cpu for BlockCpu<'_, '_> {
    fn compute(&mut self, orders: &[CpuOrder]) -> Result<Flow, UnitFailed> {
        let way = way_of(self.kernels, self.block);
        let outcome = if orders.iter().any(|order| order.bytes.is_some()) {
            let experts: Vec<_> = orders.iter().filter_map(CpuOrder::read).collect();
            self.cpu.compute_with(self.block, &experts, way)
        } else {
            let rows = rows_of(self.block, orders);
            self.cpu.compute_rows(self.block, &rows, way)
        };
        flow(outcome.map_err(|error| UnitFailed(error.to_string()))?)
    }
}

/// (token, slot) of everything routed to these experts.
fn rows_of(block: &ExpertBlock<'_>, orders: &[CpuOrder]) -> Vec<(usize, usize)> {
    let is_ours = |expert| orders.iter().any(|order| u32::from(order.key.expert) == expert);
    let ours = block.rows().filter(|&(_, _, expert)| is_ours(expert));
    ours.map(|(token, slot, _)| (token, slot)).collect()
}

fn flow(outcome: ComputeOutcome) -> Result<Flow, UnitFailed> {
    match outcome {
        ComputeOutcome::Done => Ok(Flow::Done),
        ComputeOutcome::Aborted => Ok(Flow::Cancelled),
        ComputeOutcome::Failed => Err(UnitFailed("ggml reported failure".into())),
    }
}
