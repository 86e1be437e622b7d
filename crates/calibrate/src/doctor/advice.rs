//! Facts to lines: one topic each, what is there, and how to get what is missing. Pure.

use motley_machine::CoreRole;
use motley_model::format_bytes;
use serde::Serialize;

use super::direct::DirectIo;
use super::facts::{Facts, Sandbox, Shown};

/// Share of the cores others may keep busy before it is worth a word.
const BUSY_SHARE: f64 = 0.25;
/// Percent of time waiting for memory that is worth a word; streaming keeps it near zero.
const PRESSURE_PERCENT: f64 = 5.0;

/// How good a topic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// There, and used.
    Good,
    /// There, and could serve better.
    Limited,
    /// Not there, or not used by this build.
    Missing,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it is about.
    pub topic: &'static str,
    /// How good it is.
    pub state: State,
    pub found: String,
    /// What can be done, where something can.
    pub advice: Option<String>,
}

/// One line per topic, in the order people ask.
pub fn advise(facts: &Facts) -> Vec<Line> {
    let topics = [
        processor,
        instructions,
        load,
        memory,
        nodes,
        pressure,
        huge_pages,
        disk,
        direct_io,
        gpu,
        npu,
        power,
        meter,
        calibration,
        sandbox,
    ];
    topics.iter().filter_map(|topic| topic(facts)).collect()
}

impl Line {
    fn good(topic: &'static str, found: impl Into<String>) -> Option<Self> {
        Some(Self { topic, state: State::Good, found: found.into(), advice: None })
    }

    fn limited(
        topic: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Option<Self> {
        let (found, advice) = (found.into(), Some(advice.into()));
        Some(Self { topic, state: State::Limited, found, advice })
    }

    fn missing(
        topic: &'static str,
        found: impl Into<String>,
        advice: Option<String>,
    ) -> Option<Self> {
        Some(Self { topic, state: State::Missing, found: found.into(), advice })
    }
}

fn processor(facts: &Facts) -> Option<Line> {
    let name = facts.cpu.as_deref().unwrap_or("unknown processor");
    let cluster = |cluster: &super::facts::Cluster| {
        let role = match cluster.role {
            CoreRole::Prime => "fast",
            CoreRole::Performance => "middle",
            CoreRole::Efficiency => "small",
        };
        let clock = cluster.max_ghz.map_or(String::new(), |ghz| format!(" at {ghz:.2} GHz"));
        format!("{} {role}{clock}", cluster.cores)
    };
    let cores = match facts.clusters.len() {
        0 | 1 => facts.cores.to_string(),
        _ => facts.clusters.iter().map(cluster).collect::<Vec<_>>().join(" + "),
    };
    let cache = facts.caches_bytes.last().filter(|(level, _)| *level > 1);
    let cache = cache.map_or(String::new(), |(l, b)| format!(", L{l} {}", format_bytes(*b)));
    let virtual_ = if facts.is_virtual { ", virtual" } else { "" };
    let sockets =
        if facts.sockets > 1 { format!(" in {} sockets", facts.sockets) } else { String::new() };
    let threads = if facts.threads > facts.cores {
        format!(" ({} threads)", facts.threads)
    } else {
        String::new()
    };
    let cores = format!("{cores} cores{threads}{sockets}");
    Line::good("Processor", format!("{name}: {cores}{cache}{virtual_}"))
}

fn instructions(facts: &Facts) -> Option<Line> {
    let wide = [
        "AMX_INT8",
        "AVX512_VNNI",
        "AVX512",
        "AVX_VNNI",
        "AVX2",
        "SVE",
        "MATMUL_INT8",
        "DOTPROD",
        "NEON",
    ];
    let used = &facts.build.used_instructions;
    let mut names: Vec<_> =
        wide.into_iter().filter(|name| used.iter().any(|u| u == name)).collect();
    names.truncate(4);
    let mut found = if names.is_empty() {
        "plain kernels".to_owned()
    } else {
        format!("{} used", names.join(", "))
    };
    if let Some(kernels) = &facts.build.kernels {
        found += &format!(" (kernels for {kernels}, chosen at start)");
    }
    match &facts.build.instructions_hint {
        None => Line::good("Instructions", found),
        Some(hint) => {
            let unused = facts.build.unused_instructions.join(", ");
            Line::limited("Instructions", format!("{found}; {unused} unused"), hint.clone())
        }
    }
}

fn load(facts: &Facts) -> Option<Line> {
    let load = facts.load_one_min?;
    let found = format!("{load:.2} on {} cores over the last minute", facts.cores);
    if load < BUSY_SHARE * facts.cores as f64 {
        return Line::good("Load", found);
    }
    let free = (facts.cores as f64 - load).floor().max(1.0);
    let advice =
        format!("other work slows every thread down: wait for it, or run --threads {free}");
    Line::limited("Load", found, advice)
}

fn memory(facts: &Facts) -> Option<Line> {
    let Some(memory) = facts.memory else {
        return Line::missing(
            "Memory",
            "the system does not report it",
            Some("give --memory SIZE".into()),
        );
    };
    let found = format!(
        "{} of {} free for Motley",
        format_bytes(memory.room_bytes),
        format_bytes(memory.total_bytes)
    );
    match memory.limit_bytes {
        None => Line::good("Memory", found),
        Some(limit) => Line::limited(
            "Memory",
            format!("{found}; a control group allows {}", format_bytes(limit)),
            "raise the container's or the service's memory limit to use more",
        ),
    }
}

fn nodes(facts: &Facts) -> Option<Line> {
    if facts.memory_nodes < 2 {
        return None;
    }
    let found = format!("{} nodes; each keeps a part of the experts in memory", facts.memory_nodes);
    let advice = "when a model fits one node: numactl --cpunodebind=0 --membind=0 motley …";
    Line::limited("Memory nodes", found, advice)
}

fn pressure(facts: &Facts) -> Option<Line> {
    let Some(percent) = facts.pressure_some_avg10 else {
        let advice =
            "start the kernel with psi=1; without it Motley cannot give memory back in time";
        return Line::missing("Pressure", "not reported by the kernel", Some(advice.into()));
    };
    let found = format!("tasks waited for memory {percent:.1} % of the last 10 s");
    if percent < PRESSURE_PERCENT {
        return Line::good("Pressure", found);
    }
    Line::limited("Pressure", found, "close something, or give Motley less: --memory SIZE")
}

fn huge_pages(facts: &Facts) -> Option<Line> {
    match facts.huge_pages {
        Some("never") => Line::limited(
            "Huge pages",
            "switched off",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(setting) => Line::good("Huge pages", format!("transparent, {setting}")),
        None => Line::missing("Huge pages", "none in this kernel", None),
    }
}

fn disk(facts: &Facts) -> Option<Line> {
    let Some(disk) = &facts.disk else {
        return Line::missing("Disk", "not reported by the system", None);
    };
    let device = disk.device.as_ref().map_or(String::new(), |device| format!(" ({device})"));
    let found = format!("{}{device}, {} at {}", disk.kind, disk.filesystem, disk.mount);
    match (disk.slow_at_random, disk.is_memory) {
        (true, _) => Line::limited(
            "Disk",
            found,
            "experts are read at random: keep models on a solid-state disk",
        ),
        (_, true) => {
            Line::limited("Disk", found, "models here take memory twice: keep them on a disk")
        }
        _ => Line::good("Disk", found),
    }
}

fn direct_io(facts: &Facts) -> Option<Line> {
    match facts.direct_io {
        DirectIo::Works => Line::good("Direct reads", "work: experts come past the page cache"),
        DirectIo::Refused => Line::limited(
            "Direct reads",
            "refused by this filesystem; reads go through the page cache",
            "keep models on ext4, xfs, btrfs without compression, or f2fs",
        ),
        DirectIo::Untried => {
            let advice = "give a model or a folder you may write to: motley doctor PATH";
            Line::missing("Direct reads", "no file to try", Some(advice.into()))
        }
    }
}

fn gpu(facts: &Facts) -> Option<Line> {
    let usable = &facts.build.gpus;
    if !usable.is_empty() {
        let one = |g: &super::build::UsableGpu| {
            format!(
                "{} ({}), {} of {} free",
                g.description,
                g.name,
                format_bytes(g.free_bytes),
                format_bytes(g.total_bytes)
            )
        };
        return Line::good("GPU", usable.iter().map(one).collect::<Vec<_>>().join("; "));
    }
    if facts.gpus.is_empty() {
        return Line::missing("GPU", "none shown", None);
    }
    let feature = match facts.gpus.iter().any(|gpu| gpu.vendor == Some("NVIDIA")) {
        true => "cuda (or vulkan)",
        false => "vulkan",
    };
    let advice = format!("build with --features {feature}");
    Line::missing("GPU", format!("{}; not used by this build", shown(&facts.gpus)), Some(advice))
}

fn npu(facts: &Facts) -> Option<Line> {
    match facts.npus.is_empty() {
        true => Line::missing("NPU", "none shown", None),
        false => {
            Line::missing("NPU", format!("{}; not used by this build", shown(&facts.npus)), None)
        }
    }
}

fn shown(all: &[Shown]) -> String {
    let one = |shown: &Shown| {
        let driver = shown.driver.as_ref().map_or(String::new(), |driver| format!(" ({driver})"));
        format!("{}{driver}", shown.vendor.unwrap_or(&shown.node))
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn power(facts: &Facts) -> Option<Line> {
    match facts.on_battery_percent {
        None => Line::good("Power", "mains"),
        Some(percent) => Line::limited(
            "Power",
            format!("battery, {percent} % left"),
            "processors clock lower on battery; plug in to measure speed",
        ),
    }
}

fn meter(facts: &Facts) -> Option<Line> {
    let own = facts.meter.works.then(|| facts.meter.name.clone());
    let names: Vec<String> = own.into_iter().chain(facts.gpu_meters.iter().cloned()).collect();
    if !names.is_empty() {
        return Line::good("Energy meter", names.join(", "));
    }
    if let Some(program) = &facts.meter.root_only {
        let found = format!("only root may run {program}; energy is estimated");
        return Line::missing("Energy meter", found, Some("sudo motley run …".into()));
    }
    let Some(file) = &facts.meter.unreadable else {
        return Line::missing("Energy meter", "none shown; energy is estimated", None);
    };
    let advice = format!("sudo chmod a+r {file}");
    Line::missing("Energy meter", "RAPL is there, but only root may read it", Some(advice))
}

fn calibration(facts: &Facts) -> Option<Line> {
    let Some(run) = &facts.calibration else {
        let advice = "motley calibrate (a minute on an idle machine)".to_owned();
        return Line::missing("Calibration", "plans use estimates", Some(advice));
    };
    if run.quick {
        let found = format!("a quick one of {}", run.date);
        let advice = "motley calibrate (a minute on an idle machine) is more exact";
        return Line::limited("Calibration", found, advice);
    }
    let found = format!("made {}", run.date);
    let busy = |load: &f64| *load > BUSY_SHARE * facts.cores as f64;
    match run.load_one_min.filter(busy) {
        None => Line::good("Calibration", found),
        Some(load) => {
            let found = format!("{found} while other work ran (load {load:.1})");
            Line::limited("Calibration", found, "motley calibrate, when the machine is idle")
        }
    }
}

fn sandbox(facts: &Facts) -> Option<Line> {
    let Sandbox { landlock_abi, seccomp } = facts.sandbox;
    let advice = "Linux 5.13 or later with `landlock` among its security modules (lsm=), and a \
                  container that allows it";
    match (landlock_abi, seccomp) {
        (Some(abi), true) => {
            let found = format!("files by Landlock (ABI {abi}), system calls by seccomp");
            Line::good("Sandbox", found)
        }
        (Some(abi), false) => {
            let found = format!("files by Landlock (ABI {abi}); system calls are not restricted");
            Line::limited("Sandbox", found, "a container that allows seccomp(2)")
        }
        (None, true) => {
            Line::limited("Sandbox", "system calls by seccomp; files are not restricted", advice)
        }
        (None, false) => {
            let found = "none: serve and run may do what their user may";
            Line::missing("Sandbox", found, Some(advice.to_owned()))
        }
    }
}
