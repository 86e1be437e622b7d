//! The devices of a session: their memory in slots, and each as a unit and a link to the executor.
//! `sched::shares` divides the slots.

use super::device::{DeviceLink, DeviceUnit, Held};
use super::units::Link;
use motley_ggml::gpu::{GpuDevice, GpuOptions, GpuUnit, UnitError};
use motley_model::ModelSpec;
use motley_plan::headroom::{device_room, device_rows};
use motley_sched::shares::{DeviceSlots, LayerSlots, Shares, divide};
use motley_store::{MappedExperts, MappedFiles};

/// A device and what it may give.
#[derive(Debug, Clone)]
pub struct DeviceRoom {
    pub device: GpuDevice,
    /// Its memory for experts; `None` takes what is left when the first block comes, after
    /// llama.cpp's dense layers and KV cache.
    pub budget_bytes: Option<u64>,
}

/// What [`start`] made, device by device.
#[derive(Default)]
pub(super) struct Devices {
    pub(super) shares: Vec<Shares>,
    pub(super) lanes: Vec<(DeviceUnit, Box<dyn Link>)>,
    /// The units again, to ask.
    pub(super) units: Vec<GpuUnit>,
}

/// Takes the memory: slots on each device, of which at most `experts_most` are used in all.
pub(super) fn start(
    rooms: &[DeviceRoom],
    experts_most: u32,
    spec: &ModelSpec,
    bytes: MappedFiles,
) -> Result<Devices, String> {
    let files = MappedExperts::new(spec, bytes).map_err(|error| error.to_string())?;
    let units = units(rooms, spec).map_err(|error| error.to_string())?;
    let slots: Vec<u32> = units.iter().map(GpuUnit::slots).collect();
    let mut devices = Devices { units, ..Devices::default() };
    for (unit, most) in devices.units.iter().zip(divide(experts_most, &slots)) {
        let shares = Shares::of(&slots_of(unit, spec, most));
        let lanes = lanes(unit, &shares, &files).map_err(|error| error.to_string())?;
        devices.lanes.push(lanes);
        devices.shares.push(shares);
    }
    Ok(devices)
}

/// The devices that have room for an expert; an error if none has.
fn units(rooms: &[DeviceRoom], spec: &ModelSpec) -> Result<Vec<GpuUnit>, UnitError> {
    let (mut units, mut too_small) = (Vec::new(), None);
    for room in rooms {
        match unit(room, spec) {
            Ok(unit) => units.push(unit),
            Err(error @ UnitError::NoRoom { .. }) => too_small = Some(error),
            Err(error) => return Err(error),
        }
    }
    match too_small {
        Some(error) if units.is_empty() => Err(error),
        _ => Ok(units),
    }
}

fn unit(room: &DeviceRoom, spec: &ModelSpec) -> Result<GpuUnit, UnitError> {
    let left = || device_room(room.device.free_bytes());
    let budget = room.budget_bytes.unwrap_or_else(left);
    GpuUnit::new(&room.device, spec, &GpuOptions::within(budget, device_rows(budget)))
}

fn lanes(
    unit: &GpuUnit,
    shares: &Shares,
    files: &MappedExperts,
) -> Result<(DeviceUnit, Box<dyn Link>), UnitError> {
    let held = Held::new(shares.capacity.total() + u32::from(shares.limits.staging_slots));
    let (lane, held_by_link) = (unit.copy_lane()?, held.clone());
    let link = DeviceLink { unit: unit.clone(), lane, held: held_by_link, files: files.clone() };
    let device = DeviceUnit { unit: unit.clone(), lane: unit.compute_lane()?, held };
    Ok((device, Box::new(link)))
}

/// The slots, layer by layer.
fn slots_of(unit: &GpuUnit, spec: &ModelSpec, most: u32) -> DeviceSlots {
    let of =
        |layer| LayerSlots { slots: unit.slots_of(layer), slot_bytes: unit.expert_bytes(layer) };
    DeviceSlots {
        all: unit.slots(),
        most,
        experts: spec.experts,
        all_experts: spec.expert_layers().count() as u32 * spec.experts,
        layers: (0..spec.shape.layers).map(of).collect(),
    }
}
