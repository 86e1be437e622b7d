//! N5: hot groups stay on the device, those that do not pay for their launch go to the CPU.

use motley_cost::ComputeCost;

use super::groups::Group;

/// What a row costs on either side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupCosts {
    /// One launch of a graph, synchronisation included.
    pub device_launch_us: f64,
    /// One row of one expert on the device, padding rows included.
    pub device_row_us: f64,
    /// One expert on the CPU.
    pub cpu: ComputeCost,
}

/// Where a group runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// On the static-graph device.
    Device,
    /// On the CPU path.
    Cpu,
}

/// A group, its home and what a chunk costs there.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub group: Group,
    pub home: Home,
    /// Expected time of a chunk there.
    pub us: f64,
}

impl GroupCosts {
    /// One chunk of `group` on the device: every row, used or not.
    pub fn device_us(&self, group: &Group) -> f64 {
        self.device_launch_us + self.device_row_us * group.rows() as f64
    }

    /// The same on the CPU, which computes routed rows only.
    pub fn cpu_us(&self, loads: impl Iterator<Item = u32>) -> f64 {
        loads.map(|load| self.cpu.us(load)).sum()
    }
}

/// Gives every group the home where a chunk with these expected `loads` per expert is faster.
pub fn place(groups: Vec<Group>, loads: &[u32], costs: &GroupCosts) -> Vec<Placed> {
    let place = |group: Group| {
        let device = costs.device_us(&group);
        let cpu = costs.cpu_us(group.experts.iter().map(|expert| loads[usize::from(*expert)]));
        let (home, us) = if device <= cpu { (Home::Device, device) } else { (Home::Cpu, cpu) };
        Placed { group, home, us }
    };
    groups.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_group_does_not_pay_for_its_launch() {
        let costs = GroupCosts {
            device_launch_us: 1000.0,
            device_row_us: 1.0,
            cpu: ComputeCost { launch_us: 1.0, per_token_us: 10.0, floor_us: 20.0 },
        };
        let group = |experts: &[u16]| Group { experts: experts.to_vec(), capacity: 64 };
        let placed = place(vec![group(&[0, 1]), group(&[2, 3])], &[60, 60, 3, 0], &costs);
        assert_eq!((placed[0].home, placed[0].us), (Home::Device, 1128.0));
        assert_eq!((placed[1].home, placed[1].us), (Home::Cpu, 31.0));
    }
}
