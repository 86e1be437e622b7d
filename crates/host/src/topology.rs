//! Cores, clusters, caches and memory nodes as sysfs shows them. Chooses no core.
//!
//! A *cluster* is a set of equal cores, biggest first, the order in which A2 walks them. On a
//! phone it is a frequency domain. Desktop processors clock every core by itself; there cores
//! of one package and kind belong together when they are within a tenth of each other in speed
//! (a "favoured" core is a few percent faster and still the same core).

use std::path::Path;

use motley_machine::{CoreCluster, CoreRole, MemoryNode};

use crate::{cpu_name, files};

/// Most logical CPUs looked at.
const MAX_CPUS: usize = 4096;
/// Cores that clock alone form one cluster down to this share of its fastest.
const SAME_SPEED: f64 = 0.9;
/// Below this share of the fastest core's frequency a cluster is of efficiency cores; the small
/// clusters of A7's phones are at 0.65 to 0.70, their middle ones at 0.81 and above.
const EFFICIENCY_BELOW: f64 = 0.75;
/// The same for capacity, which counts work and not cycles: small cores have 0.2 to 0.4.
const EFFICIENCY_CAPACITY_BELOW: f64 = 0.5;

/// What computes on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Online logical CPUs by number.
    pub cpus: Vec<Cpu>,
    /// Equal cores, biggest first.
    pub clusters: Vec<Cluster>,
    /// Caches, each once, by level.
    pub caches: Vec<Cache>,
    /// Memory nodes; one on most machines, none when the kernel shows none.
    pub nodes: Vec<Node>,
}

/// One logical CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// Its number, as affinity masks count.
    pub id: usize,
    /// Socket.
    pub package: u32,
    /// Logical CPUs of the same core, this one included.
    pub siblings: Vec<usize>,
    /// Work per time relative to the fastest CPU at 1024.
    pub capacity: Option<u32>,
    pub max_khz: Option<u64>,
    /// Of the device tree: µW for each MHz and V² of a busy core.
    pub dynamic_power: Option<u32>,
    /// CPUs that clock together with this one.
    domain: Vec<usize>,
    /// One of the small cores of a hybrid processor (`cpu_atom`).
    small: bool,
    name: Option<String>,
}

/// Equal cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// What the core is called, where known (`A77`, `Oryon`).
    pub name: Option<String>,
    /// Logical CPUs.
    pub cpus: Vec<usize>,
    /// Cores: logical CPUs without their siblings.
    pub cores: usize,
    /// Socket.
    pub package: u32,
    /// Work per time of one CPU relative to the fastest at 1024.
    pub capacity: Option<u32>,
    /// Highest frequency of its fastest core.
    pub max_khz: Option<u64>,
    /// Power of one busy core, in a unit all clusters share.
    pub dynamic_power: Option<u32>,
    /// What the cluster is for (A2).
    pub role: CoreRole,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// 1, 2, 3, …
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub size_bytes: u64,
    /// Logical CPUs that share it.
    pub cpus: Vec<usize>,
}

/// Memory near some CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: usize,
    /// CPUs near it; none where a node is memory only.
    pub cpus: Vec<usize>,
    pub total_bytes: u64,
    /// Relative access cost to every node, itself 10.
    pub distances: Vec<u32>,
}

/// Reads the cores below `root`; `None` when `/sys/devices/system/cpu` lists none.
pub fn read(root: &Path) -> Option<Topology> {
    let online = cpu_list(&files::text(root, "sys/devices/system/cpu/online")?);
    let small = files::text(root, "sys/devices/cpu_atom/cpus").map_or(vec![], |t| cpu_list(&t));
    let names = cpu_name::by_cpu(root);
    let cpus: Vec<Cpu> = online
        .into_iter()
        .map(|id| Cpu {
            small: small.contains(&id),
            name: names.get(&id).cloned(),
            ..cpu(root, id)
        })
        .collect();
    let clusters = clusters(&cpus);
    let caches = caches(root, &cpus);
    (!cpus.is_empty()).then(|| Topology { cpus, clusters, caches, nodes: nodes(root) })
}

impl Topology {
    /// Cores without their siblings.
    pub fn cores(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.cores).sum()
    }

    /// Sockets.
    pub fn packages(&self) -> usize {
        let mut packages: Vec<u32> = self.cpus.iter().map(|cpu| cpu.package).collect();
        packages.sort_unstable();
        packages.dedup();
        packages.len()
    }

    /// Bytes of all caches of `level` that hold data.
    pub fn cache_bytes(&self, level: u32) -> u64 {
        let holds_data = |cache: &&Cache| cache.level == level && cache.kind != "Instruction";
        self.caches.iter().filter(holds_data).map(|cache| cache.size_bytes).sum()
    }

    /// Cores near `node`, without siblings.
    pub fn cores_near(&self, node: &Node) -> usize {
        let is_first = |cpu: &&Cpu| cpu.siblings.iter().min() == Some(&cpu.id);
        let near = self.cpus.iter().filter(|cpu| node.cpus.contains(&cpu.id));
        near.filter(is_first).count()
    }

    /// The memory nodes as a machine file describes them, for the device `device`; none when
    /// there is only one.
    pub fn machine_nodes(&self, device: &str) -> Vec<MemoryNode> {
        let node = |node: &Node| MemoryNode {
            id: node.id as u32,
            device: device.into(),
            memory_gib: node.total_bytes as f64 / (1_u64 << 30) as f64,
            cores: self.cores_near(node) as u32,
        };
        let several = self.nodes.len() > 1;
        self.nodes.iter().filter(|_| several).map(node).collect()
    }

    /// The clusters as a machine file describes them, for the device `device`. Clusters of
    /// unknown frequency get `unknown_ghz`. Capacity and power scale (A3) are relative to the
    /// biggest cluster, and left out (the scale: 1) where the system tells them of some only.
    pub fn machine_clusters(&self, device: &str, unknown_ghz: f64) -> Vec<CoreCluster> {
        let capacities = shares(self.clusters.iter().map(|cluster| cluster.capacity));
        let powers = shares(self.clusters.iter().map(|cluster| cluster.dynamic_power));
        let cluster = |(index, cluster): (usize, &Cluster)| CoreCluster {
            name: cluster.name.clone().unwrap_or_else(|| "core".into()),
            device: device.into(),
            role: cluster.role,
            cores: cluster.cores as u32,
            max_ghz: cluster.max_khz.map_or(unknown_ghz, |khz| khz as f64 / 1e6),
            power_scale: powers.as_ref().map_or(1.0, |powers| powers[index]),
            capacity: capacities.as_ref().map(|capacities| capacities[index]),
        };
        self.clusters.iter().enumerate().map(cluster).collect()
    }
}

/// Each over the first, the biggest cluster's; `None` when one is unknown or zero.
fn shares(values: impl Iterator<Item = Option<u32>>) -> Option<Vec<f64>> {
    let values: Vec<u32> = values.map(|value| value.filter(|v| *v > 0)).collect::<Option<_>>()?;
    let biggest = f64::from(*values.first()?);
    Some(values.into_iter().map(|value| f64::from(value) / biggest).collect())
}

/// A list as the kernel writes it: `0-3,8,10-11`. What is not a number is skipped.
fn cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last < MAX_CPUS).then_some(first..=last)
    };
    text.trim().split([',', ' ']).filter_map(range).flatten().collect()
}

fn cpu(root: &Path, id: usize) -> Cpu {
    let dir = root.join(format!("sys/devices/system/cpu/cpu{id}"));
    let list = |path: &str| files::read(&dir.join(path)).map(|text| cpu_list(&text));
    let alone = || vec![id];
    Cpu {
        id,
        package: files::value(&dir.join("topology/physical_package_id")).unwrap_or(0),
        siblings: list("topology/core_cpus_list")
            .or_else(|| list("topology/thread_siblings_list"))
            .unwrap_or_else(alone),
        capacity: files::value(&dir.join("cpu_capacity")),
        max_khz: files::value(&dir.join("cpufreq/cpuinfo_max_freq")),
        dynamic_power: files::big_endian(&dir.join("of_node/dynamic-power-coefficient")),
        domain: list("cpufreq/related_cpus").unwrap_or_else(alone),
        small: false,
        name: None,
    }
}

fn clusters(cpus: &[Cpu]) -> Vec<Cluster> {
    // Siblings share a clock everywhere; other cores make a domain only where they share one too.
    let together = cpus.iter().any(|cpu| cpu.domain.iter().any(|id| !cpu.siblings.contains(id)));
    let mut sorted: Vec<&Cpu> = cpus.iter().collect();
    sorted.sort_by_key(|cpu| std::cmp::Reverse((speed(cpu), std::cmp::Reverse(cpu.id))));
    let mut groups: Vec<Vec<&Cpu>> = Vec::new();
    for cpu in sorted {
        let same = |group: &&mut Vec<&Cpu>| match together {
            true => group[0].domain == cpu.domain,
            false => alike(group[0], cpu),
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(cpu),
            None => groups.push(vec![cpu]),
        }
    }
    let fastest = groups.first().map(|group| group[0].clone());
    groups.iter().map(|group| cluster(group, fastest.as_ref())).collect()
}

/// Big before small, then by capacity, then by frequency.
fn speed(cpu: &Cpu) -> (bool, u32, u64) {
    (!cpu.small, cpu.capacity.unwrap_or(0), cpu.max_khz.unwrap_or(0))
}

fn alike(a: &Cpu, b: &Cpu) -> bool {
    let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => b >= SAME_SPEED * a,
        _ => true,
    };
    a.package == b.package
        && a.small == b.small
        && a.name == b.name
        && near(a.capacity.map(f64::from), b.capacity.map(f64::from))
        && near(a.max_khz.map(|khz| khz as f64), b.max_khz.map(|khz| khz as f64))
}

fn cluster(group: &[&Cpu], fastest: Option<&Cpu>) -> Cluster {
    let mut cpus: Vec<usize> = group.iter().map(|cpu| cpu.id).collect();
    cpus.sort_unstable();
    let is_first = |cpu: &&&Cpu| cpu.siblings.iter().min() == Some(&cpu.id);
    let first = group[0];
    Cluster {
        name: first.name.clone(),
        cpus,
        cores: group.iter().filter(is_first).count(),
        package: first.package,
        capacity: first.capacity,
        max_khz: first.max_khz,
        dynamic_power: first.dynamic_power,
        role: fastest.map_or(CoreRole::Prime, |fastest| role(first, fastest)),
    }
}

/// The class of A2 by size: small cores, the fastest, and what lies between.
fn role(cpu: &Cpu, fastest: &Cpu) -> CoreRole {
    let share = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let capacity = share(cpu.capacity.map(f64::from), fastest.capacity.map(f64::from));
    let frequency = share(cpu.max_khz.map(|k| k as f64), fastest.max_khz.map(|k| k as f64));
    let small = cpu.small && !fastest.small
        || capacity.is_some_and(|share| share < EFFICIENCY_CAPACITY_BELOW)
        || frequency.is_some_and(|share| share < EFFICIENCY_BELOW);
    let equal = capacity.unwrap_or(1.0) >= SAME_SPEED
        && frequency.unwrap_or(1.0) >= SAME_SPEED
        && cpu.package != fastest.package;
    match (small, speed(cpu) == speed(fastest) || equal) {
        (true, _) => CoreRole::Efficiency,
        (false, true) => CoreRole::Prime,
        (false, false) => CoreRole::Performance,
    }
}

fn caches(root: &Path, cpus: &[Cpu]) -> Vec<Cache> {
    let mut found: Vec<Cache> =
        cpus.iter().flat_map(|cpu| (0..8).filter_map(|index| cache(root, cpu.id, index))).collect();
    found.sort();
    found.dedup();
    found
}

fn cache(root: &Path, cpu: usize, index: usize) -> Option<Cache> {
    let dir = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}"));
    let size = files::read(&dir.join("size"))?;
    Some(Cache {
        level: files::value(&dir.join("level"))?,
        kind: files::read(&dir.join("type"))?.trim().to_owned(),
        size_bytes: size_bytes(size.trim())?,
        cpus: cpu_list(&files::read(&dir.join("shared_cpu_list"))?),
    })
}

/// `2048K`, `8M` or bytes.
fn size_bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn nodes(root: &Path) -> Vec<Node> {
    let online = files::text(root, "sys/devices/system/node/online").unwrap_or_default();
    let node = |id: usize| {
        let dir = root.join(format!("sys/devices/system/node/node{id}"));
        let meminfo = files::read(&dir.join("meminfo"))?;
        // Lines of `Node 0 MemTotal: 1234 kB`.
        let total = meminfo.lines().find_map(|line| {
            let rest = line.split_once("MemTotal:")?.1;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        let distances = files::read(&dir.join("distance")).unwrap_or_default();
        Some(Node {
            id,
            cpus: cpu_list(&files::read(&dir.join("cpulist")).unwrap_or_default()),
            total_bytes: total?.checked_mul(1024)?,
            distances: distances.split_ascii_whitespace().filter_map(|d| d.parse().ok()).collect(),
        })
    };
    cpu_list(&online).into_iter().filter_map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(cpu_list("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(cpu_list("0 1 2"), [0, 1, 2]);
        assert!(cpu_list("").is_empty() && cpu_list("0-99999999").is_empty());
    }

    #[test]
    fn sizes_of_caches() {
        assert_eq!(size_bytes("2048K"), Some(2 << 20));
        assert_eq!(size_bytes("105M"), Some(105 << 20));
        assert_eq!((size_bytes("64"), size_bytes("x"), size_bytes("")), (Some(64), None, None));
    }
}
