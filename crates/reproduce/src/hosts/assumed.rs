//! The machines, cables and goals, and what is taken for granted: the values, and in words the table
//! of the document.

use motley_cost::{Efficiency, HostLink};
use motley_machine::{DeviceKind, Machine, MachineError};

use crate::document::Assumed;

/// The machine every host is, by its name among the ready ones: 64 GiB of RAM in two channels of
/// DDR5, read at 80 GB/s, and a disk of 6.5 GB/s. Only a head uses its GPU of 24 GB.
pub const MACHINE: &str = "desktop-24gb-gpu";
/// Gain over the disk that is asked of a model which fits two hosts and not one, at 2.5 GbE.
pub const DISK_GOAL: f64 = 2.0;
/// Gain over whole layers that is asked of a head with a GPU, at 2.5 GbE.
pub const SPLIT_GOAL: f64 = 1.3;
/// Workers beside the head.
pub const WORKERS: [u16; 4] = [1, 2, 4, 8];
/// Tokens of a pass.
pub const STREAMS: [u32; 3] = [1, 16, 64];

/// Two TLS ends and their wake-ups, frames of 16 KiB there and back, network namespaces of one
/// machine, median.
const SOFTWARE_US: f64 = 70.0;
/// Two network cards and a switch, both ways: their interrupts are held back for some tens of
/// microseconds. Assumed.
const SWITCH_US: f64 = 100.0;
/// A Thunderbolt cable from host to host, without a switch. Assumed.
const CABLE_US: f64 = 50.0;

/// A cable by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedLink {
    pub name: &'static str,
    pub link: HostLink,
}

/// Rates of TCP: the line's less headers of frames of 1500 bytes. Thunderbolt 4 carries 40 Gbit/s,
/// its networking about 18.
pub const LINKS: [NamedLink; 4] = [
    named("1 GbE", SOFTWARE_US + SWITCH_US, 0.117),
    named("2.5 GbE", SOFTWARE_US + SWITCH_US, 0.294),
    named("10 GbE", SOFTWARE_US + SWITCH_US, 1.17),
    named("Thunderbolt 4", SOFTWARE_US + CABLE_US, 2.2),
];
/// The cable of the goals.
pub const GOAL_LINK: NamedLink = LINKS[1];

const fn named(name: &'static str, round_trip_us: f64, gb_per_s: f64) -> NamedLink {
    NamedLink { name, link: HostLink { round_trip_us, gb_per_s } }
}

/// What is taken for granted. Swept in the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Rate of every disk over the described one.
    pub disk_share: f64,
    /// Round trips over those of the cables.
    pub trip_share: f64,
    /// Rates of cables over their own.
    pub rate_share: f64,
    /// Skew of the experts' popularity over that of the recorded traces.
    pub skew_factor: f64,
}

/// The values the document begins with.
pub const ASSUMED: Assumptions =
    Assumptions { disk_share: 1.0, trip_share: 1.0, rate_share: 1.0, skew_factor: 1.0 };

impl Assumptions {
    /// A cable under them.
    pub fn link(&self, link: HostLink) -> HostLink {
        HostLink {
            round_trip_us: link.round_trip_us * self.trip_share,
            gb_per_s: link.gb_per_s * self.rate_share,
        }
    }

    /// A host with its GPU, and one without. Disks are described by what they read, of which the
    /// simulator takes the part that it takes of any link: here they read what they are described by.
    pub fn machines(&self) -> Result<[Machine; 2], MachineError> {
        let mut with = motley_machine::find(MACHINE)?;
        let disk = with.first(DeviceKind::Disk).map(|disk| disk.name.clone());
        for link in with.links.iter_mut().filter(|link| Some(&link.from) == disk.as_ref()) {
            link.bandwidth_gb_per_s *= self.disk_share / Efficiency::DEFAULT.bandwidth;
        }
        let without = without_gpu(&with);
        Ok([with, without])
    }
}

/// The same machine without its GPU.
pub fn without_gpu(machine: &Machine) -> Machine {
    let mut without = machine.clone();
    let gpu = machine.first(DeviceKind::Gpu).map(|gpu| gpu.name.clone());
    without.devices.retain(|device| Some(&device.name) != gpu.as_ref());
    without.links.retain(|link| Some(&link.to) != gpu.as_ref());
    without
}

/// One entry for each open point.
pub fn assumed() -> Vec<Assumed> {
    let rates: Vec<String> =
        LINKS.iter().map(|l| format!("{} {} GB/s", l.name, l.link.gb_per_s)).collect();
    vec![
        Assumed::new(
            "cables",
            rates.join(", "),
            "what TCP leaves of the line; one cable at the head, which all workers share",
        ),
        Assumed::new(
            "round trip",
            format!(
                "{SOFTWARE_US} us of software and {SWITCH_US} us of cards and switch; {CABLE_US} us \
                 of Thunderbolt"
            ),
            "the software was measured between network namespaces of one machine, the rest is assumed",
        ),
        Assumed::new(
            "hosts",
            "all alike: two channels of DDR5, 64 GiB, a disk that reads 6.5 GB/s; kernels reach three \
             quarters of bandwidth, half of arithmetic",
            "a desktop of the class; a worker gives experts what a decision leaves free of its memory",
        ),
        Assumed::new(
            "routing",
            "synthetic, with statistics of recorded traces; streams are stretches of one text",
            "experts are placed by the counts of 256 tokens before",
        ),
        Assumed::new(
            "beyond all memories",
            "experts are divided as memories are, and each host reads its own from its disk",
            "three hosts have three disks",
        ),
        Assumed::new(
            "split by layers",
            "the GPU full of layers, the others evenly over RAM; a pass goes from host to host in turn, one \
             round trip to each; what fits nowhere is read by the head",
            "llama.cpp's RPC computes one pass after the other, with several streams as well; kinder to \
             it, since its workers take more than one message each",
        ),
        Assumed::new(
            "left out",
            "attention over the context; the CPU time of encryption at the head; loss of packets",
            "the first is the same for all",
        ),
    ]
}
