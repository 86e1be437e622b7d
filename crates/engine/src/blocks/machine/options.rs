//! How devices share the experts of a model with the CPU. Data only.

use super::device_room::DeviceRoom;
use motley_machine::Regime;
use motley_sched::{Costs, Rules};
use motley_trace::ExpertKey;

/// The options.
#[derive(Debug, Clone)]
pub struct DeviceOptions {
    /// The devices; each holds some experts of every layer.
    pub devices: Vec<DeviceRoom>,
    /// Most experts there at once.
    pub experts_most: u32,
    /// Who decides where the CPU has every expert; where they are read from disk, the streaming
    /// options' rules do.
    pub rules: Rules,
    /// Experts known to be used much, the most used first: the devices begin with them.
    pub most_used: Vec<ExpertKey>,
    /// What things cost beside a CPU that has every expert; `None` takes typical ones.
    pub costs: Option<Costs>,
}

impl DeviceOptions {
    /// The defaults of the regime over `devices`.
    pub fn over(devices: Vec<DeviceRoom>) -> Self {
        Self {
            devices,
            experts_most: u32::MAX,
            rules: Rules::default_for(Regime::Hybrid),
            most_used: Vec::new(),
            costs: None,
        }
    }
}
