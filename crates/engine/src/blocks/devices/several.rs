//! The devices of a session: their memory in slots, each layer's experts on one of them, and all of
//! them as one unit and one link to the executor. `sched::shares` divides.

use super::device::{DeviceJob, DeviceLink, DeviceUnit, Held};
use super::units::{CopyOrder, FastOrder, FastUnit, Flow, Link, UnitFailed};
use motley_ggml::gpu::{GpuDevice, GpuOptions, GpuUnit, Refused, UnitError};
use motley_model::{LayerExperts, ModelSpec};
use motley_plan::headroom::{device_room, device_rows};
use motley_sched::shares::{DeviceSlots, LayerSlots, Shares, devices_of_layers};
use motley_store::{MappedExperts, MappedFiles};
use std::collections::BTreeMap;

/// A device and what it may give.
#[derive(Debug, Clone)]
pub struct DeviceRoom {
    pub device: GpuDevice,
    /// Its memory for experts; `None` takes what is left when the first block comes, after
    /// llama.cpp's dense layers and KV cache.
    pub budget_bytes: Option<u64>,
}

/// What [`start`] made.
pub(super) struct Devices {
    pub(super) shares: Shares,
    pub(super) fast: ByLayer<DeviceUnit>,
    pub(super) link: ByLayer<DeviceLink>,
    /// The units again, to ask.
    pub(super) units: ByLayer<GpuUnit>,
}

/// Takes the memory: slots for each device's layers, of which at most `experts_most` are used.
pub(super) fn start(
    rooms: &[DeviceRoom],
    experts_most: u32,
    spec: &ModelSpec,
    bytes: MappedFiles,
) -> Result<Devices, String> {
    let units = units(rooms, spec)?;
    let shares = Shares::of(&units.slots(spec, experts_most));
    let held = Held::new(shares.capacity.total() + u32::from(shares.limits.staging_slots));
    let bytes = MappedExperts::new(spec, bytes).map_err(|error| error.to_string())?;
    let fast = units.try_map(|unit| {
        let lane = unit.compute_lane()?;
        Ok(DeviceUnit { unit: unit.clone(), lane, held: held.clone() })
    })?;
    let link = units.try_map(|unit| {
        let lane = unit.copy_lane()?;
        Ok(DeviceLink { unit: unit.clone(), lane, held: held.clone(), bytes: bytes.clone() })
    })?;
    Ok(Devices { shares, fast, link, units })
}

fn units(rooms: &[DeviceRoom], spec: &ModelSpec) -> Result<ByLayer<GpuUnit>, String> {
    let room =
        |at: &DeviceRoom| at.budget_bytes.unwrap_or_else(|| device_room(at.device.free_bytes()));
    let budgets: Vec<u64> = rooms.iter().map(room).collect();
    let bytes = |layer: &Option<LayerExperts>| layer.as_ref().map_or(0, LayerExperts::total_bytes);
    let bytes: Vec<u64> = spec.layers.iter().map(bytes).collect();
    let device_of = devices_of_layers(&bytes, &budgets);
    let mut units = BTreeMap::new();
    for ((index, room), budget) in (0..).zip(rooms).zip(budgets) {
        let is_served = |layer: u32| device_of[layer as usize] == Some(index);
        if spec.expert_layers().any(|layer| is_served(layer.layer)) {
            let options = GpuOptions::within(budget, device_rows(budget));
            let unit = GpuUnit::of_layers(&room.device, spec, &is_served, &options);
            units.insert(index, unit.map_err(|error| error.to_string())?);
        }
    }
    Ok(ByLayer { units, device_of })
}

/// One of several for each layer.
pub(super) struct ByLayer<U> {
    /// By the device's number.
    units: BTreeMap<u16, U>,
    device_of: Vec<Option<u16>>,
}

impl<U> ByLayer<U> {
    fn device_of(&self, layer: u32) -> Option<u16> {
        self.device_of.get(layer as usize).copied().flatten()
    }

    fn get(&self, layer: u32) -> Option<(u16, &U)> {
        let device = self.device_of(layer)?;
        Some((device, self.units.get(&device)?))
    }

    fn get_mut(&mut self, layer: u16) -> Result<&mut U, UnitFailed> {
        let unit = self.device_of(layer.into()).and_then(|device| self.units.get_mut(&device));
        unit.ok_or_else(|| UnitFailed(format!("no device has the experts of layer {layer}")))
    }

    fn try_map<V>(&self, make: impl Fn(&U) -> Result<V, UnitError>) -> Result<ByLayer<V>, String> {
        let units = self.units.iter().map(|(&device, unit)| Ok((device, make(unit)?)));
        let units = units.collect::<Result<_, UnitError>>().map_err(|error| error.to_string())?;
        Ok(ByLayer { units, device_of: self.device_of.clone() })
    }
}

impl ByLayer<GpuUnit> {
    /// Whether the device of the block's layer takes it.
    pub(super) fn check(&self, job: &DeviceJob) -> Result<(), Refused> {
        let (_, unit) = self.get(job.layer()).ok_or(Refused::Slot)?;
        job.check(unit)
    }

    /// The slots, layer by layer.
    fn slots(&self, spec: &ModelSpec, most: u32) -> DeviceSlots {
        let of = |layer| {
            self.get(layer).map_or_else(LayerSlots::default, |(device, unit)| LayerSlots {
                device,
                slots: unit.slots_of(layer),
                slot_bytes: unit.expert_bytes(layer),
            })
        };
        DeviceSlots {
            all: self.units.values().map(GpuUnit::slots).sum(),
            most,
            experts: spec.experts,
            all_experts: spec.expert_layers().count() as u32 * spec.experts,
            layers: (0..spec.shape.layers).map(of).collect(),
        }
    }
}

impl<F: FastUnit> FastUnit for ByLayer<F> {
    type Job = F::Job;

    fn compute(&mut self, job: &mut F::Job, orders: &[FastOrder]) -> Result<Flow, UnitFailed> {
        let Some(first) = orders.first() else { return Ok(Flow::Done) };
        self.get_mut(first.key.layer)?.compute(job, orders)
    }
}

impl<L: Link> Link for ByLayer<L> {
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.get_mut(order.key.layer)?.copy(order)
    }
}
