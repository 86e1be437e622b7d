//! A device of ggml's behind the executor's traits: its compute half, its copy half, and the CPU
//! beside it for one block. Buffers are numbers to the executor; here each holds an expert.

use super::units::{CopyOrder, FastOrder, FastUnit, Flow, HomeOrder, HomeUnit, Link, UnitFailed};
use crate::blocks::drive::way_of;
use motley_ggml::gpu::{ComputeLane, CopyLane, GpuBlock, GpuExpert, GpuTask, GpuUnit, Refused};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_plan::ExpertKernels;
use motley_store::MappedExperts;
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

/// One block: a copy of what the device needs of it, and the rows it has computed.
pub struct DeviceJob {
    block: GpuBlock,
    tasks: Vec<GpuTask>,
}

impl DeviceJob {
    /// Of this block, on its thread. Refused when the device cannot do what the block asks for.
    pub fn new(block: &ExpertBlock<'_>) -> Result<Self, Refused> {
        Ok(Self { block: GpuBlock::of(block)?, tasks: Vec::new() })
    }

    /// Its layer.
    pub(super) fn layer(&self) -> u32 {
        self.block.layer()
    }

    /// Whether `unit` takes it.
    pub(super) fn check(&self, unit: &GpuUnit) -> Result<(), Refused> {
        unit.check(&self.block)
    }

    /// Writes the rows the device has computed where they belong.
    pub fn finish(&self, block: &mut ExpertBlock<'_>) {
        self.tasks.iter().for_each(|task| task.scatter(block));
    }
}

impl FastUnit for DeviceUnit {
    type Job = DeviceJob;

    fn compute(&mut self, job: &mut DeviceJob, orders: &[FastOrder]) -> Result<Flow, UnitFailed> {
        let mut experts = Vec::with_capacity(orders.len());
        for order in orders {
            let expert = self.held.lock()[order.buffer as usize].clone();
            let expert = expert.ok_or_else(|| UnitFailed(format!("{} has no bytes", order.key)))?;
            experts.push((u32::from(order.key.expert), expert));
        }
        let named: Vec<_> = experts.iter().map(|(number, expert)| (*number, expert)).collect();
        let task = self.unit.prepare_experts(&job.block, &named);
        let mut task = task.map_err(|refused| UnitFailed(refused.to_string()))?;
        let outcome = task.run(&mut self.lane);
        job.tasks.push(task);
        flow(outcome)
    }
}

/// The copy half.
pub struct DeviceLink {
    pub(super) unit: GpuUnit,
    pub(super) lane: CopyLane,
    pub(super) held: Held,
    pub(super) bytes: MappedExperts,
}

impl Link for DeviceLink {
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        // Whoever was there leaves first: the device has no slot to spare.
        drop(self.held.lock()[order.buffer as usize].take());
        let (layer, expert) = (u32::from(order.key.layer), u32::from(order.key.expert));
        let full = || UnitFailed(format!("the device has no slot for {}", order.key));
        let lease = self.unit.lease(layer).ok_or_else(full)?;
        let filled = self.lane.fill(lease, self.bytes.parts(layer, expert));
        let filled = filled.map_err(|error| UnitFailed(error.to_string()))?;
        self.held.lock()[order.buffer as usize] = Some(filled);
        Ok(())
    }
}

/// The CPU for one block.
pub struct CpuHome<'a, 'g> {
    /// The block; rows the device computes are left alone.
    pub block: &'a mut ExpertBlock<'g>,
    pub cpu: &'a mut CpuUnit,
    /// How it computes.
    pub kernels: &'a ExpertKernels,
}

impl HomeUnit for CpuHome<'_, '_> {
    fn compute(&mut self, orders: &[HomeOrder]) -> Result<Flow, UnitFailed> {
        let block = &self.block;
        let is_ours = |&(token, slot): &(usize, usize)| {
            let expert = block.expert(token, slot);
            orders.iter().any(|order| u32::from(order.key.expert) == expert)
        };
        let slots = block.slots();
        let all = (0..block.tokens()).flat_map(|token| (0..slots).map(move |slot| (token, slot)));
        let rows: Vec<_> = all.filter(is_ours).collect();
        let way = way_of(self.kernels, self.block);
        let outcome = self.cpu.compute_rows(self.block, &rows, way);
        flow(outcome.map_err(|error| UnitFailed(error.to_string()))?)
    }
}

fn flow(outcome: ComputeOutcome) -> Result<Flow, UnitFailed> {
    match outcome {
        ComputeOutcome::Done => Ok(Flow::Done),
        ComputeOutcome::Aborted => Ok(Flow::Cancelled),
        ComputeOutcome::Failed => Err(UnitFailed("ggml reported failure".into())),
    }
}
