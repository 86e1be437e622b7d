//! Rates for parts nobody measured: what a part of that kind commonly reaches, rather too little
//! than too much, with the reason in words. Reads nothing.

use motley_host::accelerators::PcieLink;
use motley_host::disk::DiskKind;
use motley_host::topology::Topology;
use motley_machine::CoreRole;

/// Highest frequency where the system names none (virtual machines).
pub(super) const GHZ: f64 = 2.5;

/// A core alone cannot use what a memory node has; this is about what it reads.
const CORE_GB_PER_S: f64 = 10.0;
/// Cores of a node that read at that rate together: two channels of DDR4.
const FULL_RATE_CORES: usize = 4;
/// What each further core adds; processors with more cores have more channels.
const FURTHER_CORE_GB_PER_S: f64 = 4.0;
/// Operations per cycle: two 256-bit units that multiply and add 32-bit numbers, or two of 128.
const FLOP_PER_CYCLE_AVX2: f64 = 32.0;
const FLOP_PER_CYCLE: f64 = 16.0;
/// An efficiency core's work per cycle beside a fast one's.
const SMALL_CORE: f64 = 0.5;
/// Wake of a thread pool.
const CPU_LAUNCH_US: f64 = 5.0;
/// Launch and synchronisation of a kernel.
const GPU_LAUNCH_US: f64 = 10.0;
const NPU_LAUNCH_US: f64 = 200.0;
/// What copies reach of a link's peak, from pinned memory.
const LINK_SHARE: f64 = 0.8;
const LINK_LATENCY_US: f64 = 10.0;

/// Rates of a device and where they come from.
pub(super) struct Rates {
    pub(super) compute_tflops: f64,
    pub(super) gb_per_s: f64,
    pub(super) launch_us: f64,
    pub(super) why: String,
}

/// Rate of a link and where it comes from.
pub(super) struct Way {
    pub(super) gb_per_s: f64,
    pub(super) latency_us: f64,
    pub(super) why: String,
}

/// A processor with these many cores near each memory node.
pub(super) fn cpu(topology: Option<&Topology>, node_cores: &[usize], avx2: bool) -> Rates {
    let flop_per_cycle = if avx2 { FLOP_PER_CYCLE_AVX2 } else { FLOP_PER_CYCLE };
    let cores: usize = node_cores.iter().sum();
    let weighted_ghz = topology.map_or(cores as f64 * GHZ, weighted_ghz);
    let unknown = topology.is_none_or(|t| t.clusters.iter().any(|c| c.max_khz.is_none()));
    let clock = if unknown { format!(", {GHZ} GHz") } else { String::new() };
    Rates {
        compute_tflops: (weighted_ghz * flop_per_cycle * 1e-3).max(1e-3),
        gb_per_s: node_cores.iter().map(|&cores| node_gb_per_s(cores)).sum::<f64>().max(1.0),
        launch_us: CPU_LAUNCH_US,
        why: format!(
            "assumed: {CORE_GB_PER_S} GB/s for each of the first {FULL_RATE_CORES} cores of a \
             memory node, {FURTHER_CORE_GB_PER_S} for each further one; {flop_per_cycle} \
             operations per core and cycle{clock}"
        ),
    }
}

/// GHz of all cores together, small ones counted for less.
fn weighted_ghz(topology: &Topology) -> f64 {
    let clusters = topology.clusters.iter().map(|cluster| {
        let ghz = cluster.max_khz.map_or(GHZ, |khz| khz as f64 / 1e6);
        let weight = if cluster.role == CoreRole::Efficiency { SMALL_CORE } else { 1.0 };
        cluster.cores as f64 * ghz * weight
    });
    clusters.sum()
}

fn node_gb_per_s(cores: usize) -> f64 {
    let full = cores.min(FULL_RATE_CORES) as f64;
    let further = cores.saturating_sub(FULL_RATE_CORES) as f64;
    full * CORE_GB_PER_S + further * FURTHER_CORE_GB_PER_S
}

/// A GPU with memory of its own: as the smaller cards on sale.
pub(super) fn own_gpu() -> Rates {
    Rates {
        compute_tflops: 20.0,
        gb_per_s: 250.0,
        launch_us: GPU_LAUNCH_US,
        why: "assumed: 250 GB/s and 20 TFLOPS, as small cards have".into(),
    }
}

/// A GPU that reads the CPU's memory.
pub(super) fn shared_gpu(memory_gb_per_s: f64) -> Rates {
    Rates {
        compute_tflops: 2.0,
        gb_per_s: memory_gb_per_s,
        launch_us: GPU_LAUNCH_US,
        why: "assumed: the CPU's rate of memory and 2 TFLOPS, as integrated graphics have".into(),
    }
}

/// A neural processor beside the CPU.
pub(super) fn npu(memory_gb_per_s: f64) -> Rates {
    Rates {
        compute_tflops: 5.0,
        gb_per_s: memory_gb_per_s,
        launch_us: NPU_LAUNCH_US,
        why: "assumed: the CPU's rate of memory and 5 TFLOPS in 16 bits".into(),
    }
}

/// Between memory and a card: by its link where the system shows it.
pub(super) fn gpu_link(pcie: Option<PcieLink>) -> Way {
    match pcie {
        Some(pcie) => Way {
            gb_per_s: pcie.gb_per_s() * LINK_SHARE,
            latency_us: LINK_LATENCY_US,
            why: format!(
                "assumed: four fifths of {} lanes at {} GT/s",
                pcie.lanes,
                f64::from(pcie.mt_per_s) * 1e-3
            ),
        },
        None => Way {
            gb_per_s: 12.0,
            latency_us: LINK_LATENCY_US,
            why: "assumed: 12 GB/s, as PCIe 4.0 x8 or 3.0 x16 reach".into(),
        },
    }
}

/// A disk, and the way from it to memory.
pub(super) fn disk(kind: DiskKind) -> (Rates, Way) {
    let (gb_per_s, latency_us) = match kind {
        DiskKind::Nvme => (2.0, 100.0),
        DiskKind::Virtual => (1.0, 200.0),
        DiskKind::SolidState | DiskKind::Unknown => (0.5, 150.0),
        DiskKind::Rotational => (0.15, 8000.0),
        DiskKind::Network => (0.1, 1000.0),
        DiskKind::Memory => (5.0, 10.0),
    };
    let why = format!("assumed: {gb_per_s} GB/s and {latency_us} us a read ({})", kind.name());
    let rates = Rates { compute_tflops: 0.0, gb_per_s, launch_us: latency_us, why: why.clone() };
    (rates, Way { gb_per_s, latency_us, why })
}
