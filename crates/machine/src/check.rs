//! The rules a machine description must keep. Judges text that parsed; never repairs it.

use std::collections::HashSet;

use crate::error::{MAX_ITEMS, MachineError};
use crate::spec::{Device, Machine};

pub(crate) fn check(machine: &Machine, origin: &str) -> Result<(), MachineError> {
    let at = Place { machine, origin };
    at.count("device", machine.devices.len(), 1)?;
    at.count("link", machine.links.len(), 0)?;
    at.count("cluster", machine.clusters.len(), 0)?;
    at.count("node", machine.nodes.len(), 0)?;
    at.names_are_unique()?;
    machine.devices.iter().try_for_each(|device| at.device(device))?;
    at.links()?;
    at.clusters()?;
    at.nodes()?;
    at.power()
}

struct Place<'a> {
    machine: &'a Machine,
    origin: &'a str,
}

struct Number<'a> {
    item: &'a str,
    field: &'static str,
    value: f64,
}

impl Place<'_> {
    fn count(&self, field: &'static str, found: usize, least: usize) -> Result<(), MachineError> {
        let rule = "between one and 256 in number";
        let number = Number { item: "file", field, value: found as f64 };
        self.must((least..=MAX_ITEMS).contains(&found), number, rule)
    }

    fn names_are_unique(&self) -> Result<(), MachineError> {
        let mut seen = HashSet::new();
        match self.machine.devices.iter().find(|device| !seen.insert(&device.name)) {
            None => Ok(()),
            Some(device) => Err(MachineError::Duplicate {
                origin: self.origin.into(),
                name: device.name.clone(),
            }),
        }
    }

    fn device(&self, device: &Device) -> Result<(), MachineError> {
        let item = &format!("device \"{}\"", device.name);
        let number = |field, value| Number { item, field, value };
        self.must(
            (1..=1024).contains(&device.count),
            number("count", f64::from(device.count)),
            "between 1 and 1024",
        )?;
        self.not_negative(number("memory_gib", device.memory_gib))?;
        self.positive(number("bandwidth_gb_per_s", device.bandwidth_gb_per_s))?;
        self.not_negative(number("launch_us", device.launch_us))?;
        self.not_negative(number("compute_tflops", device.compute_tflops))?;
        self.must(
            device.compute_tflops > 0.0 || !device.kind.computes(),
            number("compute_tflops", device.compute_tflops),
            "above zero on a device that computes",
        )?;
        self.not_negative(number("idle_w", device.idle_w.unwrap_or(0.0)))?;
        self.must(
            device.busy_w.is_none_or(|busy| busy >= device.idle_w.unwrap_or(0.0)),
            number("busy_w", device.busy_w.unwrap_or(0.0)),
            "at least idle_w",
        )?;
        if let Some(owner) = &device.shares_memory_of {
            self.known(item, "shares_memory_of", owner)?;
            let rule = "0 on a device that shares another's memory";
            self.must(device.memory_gib == 0.0, number("memory_gib", device.memory_gib), rule)?;
        }
        Ok(())
    }

    fn links(&self) -> Result<(), MachineError> {
        self.machine.links.iter().try_for_each(|link| {
            let item = &format!("link {} -> {}", link.from, link.to);
            self.known(item, "from", &link.from)?;
            self.known(item, "to", &link.to)?;
            let bandwidth = link.bandwidth_gb_per_s;
            self.positive(Number { item, field: "bandwidth_gb_per_s", value: bandwidth })?;
            self.not_negative(Number { item, field: "latency_us", value: link.latency_us })
        })
    }

    fn clusters(&self) -> Result<(), MachineError> {
        self.machine.clusters.iter().try_for_each(|cluster| {
            let item = &format!("cluster \"{}\"", cluster.name);
            self.known(item, "device", &cluster.device)?;
            self.positive(Number { item, field: "cores", value: f64::from(cluster.cores) })?;
            self.positive(Number { item, field: "max_ghz", value: cluster.max_ghz })?;
            self.positive(Number { item, field: "power_scale", value: cluster.power_scale })?;
            let capacity = cluster.capacity.unwrap_or(1.0);
            self.positive(Number { item, field: "capacity", value: capacity })
        })
    }

    fn nodes(&self) -> Result<(), MachineError> {
        self.machine.nodes.iter().try_for_each(|node| {
            let item = &format!("node {}", node.id);
            self.known(item, "device", &node.device)?;
            self.not_negative(Number { item, field: "memory_gib", value: node.memory_gib })
        })
    }

    fn power(&self) -> Result<(), MachineError> {
        let Some(power) = self.machine.power else { return Ok(()) };
        let factor = power.idle_core_factor;
        let number = Number { item: "power", field: "idle_core_factor", value: factor };
        self.must((0.0..=1.0).contains(&factor), number, "between 0 and 1")?;
        self.not_negative(Number { item: "power", field: "static_w", value: power.static_w })
    }

    fn known(&self, item: &str, field: &'static str, name: &str) -> Result<(), MachineError> {
        if self.machine.device(name).is_some() {
            return Ok(());
        }
        let names: Vec<_> = self.machine.devices.iter().map(|d| d.name.as_str()).collect();
        Err(MachineError::UnknownDevice {
            origin: self.origin.into(),
            item: item.into(),
            field,
            name: name.into(),
            known: names.join(", "),
        })
    }

    fn positive(&self, number: Number<'_>) -> Result<(), MachineError> {
        self.must(number.value.is_finite() && number.value > 0.0, number, "above zero")
    }

    fn not_negative(&self, number: Number<'_>) -> Result<(), MachineError> {
        let rule = "finite and not negative";
        self.must(number.value.is_finite() && number.value >= 0.0, number, rule)
    }

    fn must(&self, holds: bool, at: Number<'_>, rule: &'static str) -> Result<(), MachineError> {
        if holds {
            return Ok(());
        }
        Err(MachineError::Value {
            origin: self.origin.into(),
            item: at.item.into(),
            field: at.field,
            value: at.value,
            rule,
        })
    }
}
