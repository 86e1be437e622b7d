//! Which disk and filesystem hold a path. Reads no data of it and measures nothing.

use std::path::{Path, PathBuf};

use crate::cgroup::unescape;
use crate::files;

/// Deepest stack of device-mapper devices followed.
const MAX_DEPTH: usize = 8;

/// Where a path lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub mount: PathBuf,
    /// `ext4`, `btrfs`, `overlay`, …
    pub filesystem: String,
    /// Whole disk that holds it (`nvme0n1`), where there is one to see.
    pub device: Option<String>,
    /// Its model, where known.
    pub model: Option<String>,
    /// What kind it is.
    pub kind: DiskKind,
    pub size_bytes: Option<u64>,
    /// Smallest unit it reads, in bytes.
    pub block_bytes: Option<u32>,
}

/// What a filesystem is stored on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKind {
    /// NVMe.
    Nvme,
    /// Another disk without moving parts: SATA, UFS, eMMC.
    SolidState,
    /// Rotating platters: reads at random are a hundred times slower.
    Rotational,
    /// A virtual machine's disk; what lies below is unknown.
    Virtual,
    /// Files of another machine.
    Network,
    /// Memory (`tmpfs`): expert streaming from it makes no sense.
    Memory,
    /// The system does not say.
    Unknown,
}

impl DiskKind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvme => "NVMe",
            Self::SolidState => "solid state",
            Self::Rotational => "rotating",
            Self::Virtual => "virtual disk",
            Self::Network => "network",
            Self::Memory => "memory",
            Self::Unknown => "unknown kind",
        }
    }
}

/// The disk below `path`, an absolute path without links as the machine under `root` sees it.
pub fn of_path(root: &Path, path: &Path) -> Option<Disk> {
    let mounts = files::text(root, "proc/self/mountinfo")?;
    // Later lines hide earlier ones on the same point.
    let mount = mounts
        .lines()
        .filter_map(Mount::parse)
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())?;
    let block = block_dir(root, &mount).map(|dir| whole_disk(&dir, MAX_DEPTH));
    let text = |name: &str| files::read(&block.as_ref()?.join(name)).map(|t| t.trim().to_owned());
    let device = block.as_ref().and_then(|dir| Some(dir.file_name()?.to_str()?.to_owned()));
    let rotational = text("queue/rotational").map(|flag| flag == "1");
    let sectors = text("size").and_then(|sectors| sectors.parse::<u64>().ok());
    Some(Disk {
        kind: kind(&mount.filesystem, device.as_deref(), rotational),
        mount: mount.point,
        filesystem: mount.filesystem,
        device,
        model: text("device/model").filter(|model| !model.is_empty()),
        // The kernel counts sectors of 512 bytes whatever the disk's own are.
        size_bytes: sectors.and_then(|sectors| sectors.checked_mul(512)),
        block_bytes: text("queue/logical_block_size").and_then(|size| size.parse().ok()),
    })
}

struct Mount {
    /// `major:minor`.
    numbers: String,
    point: PathBuf,
    filesystem: String,
    source: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<_> = left.split(' ').collect();
        let mut right = right.split(' ');
        Some(Self {
            numbers: (*left.get(2)?).to_owned(),
            point: unescape(left.get(4)?).into(),
            filesystem: right.next()?.to_owned(),
            source: unescape(right.next()?),
        })
    }
}

/// The block device's folder in sysfs. Filesystems of many disks (btrfs) have no number of a
/// disk, but name one as their source.
fn block_dir(root: &Path, mount: &Mount) -> Option<PathBuf> {
    let by_number = root.join("sys/dev/block").join(&mount.numbers);
    let by_name = || {
        let name = mount.source.strip_prefix("/dev/")?.replace("mapper/", "");
        Some(root.join("sys/class/block").join(name))
    };
    let found = by_number.canonicalize().ok();
    found.or_else(|| by_name()?.canonicalize().ok())
}

/// From a partition or a mapped device down to the disk.
fn whole_disk(dir: &Path, depth: usize) -> PathBuf {
    if dir.join("partition").exists()
        && let Some(parent) = dir.parent()
    {
        return parent.to_path_buf();
    }
    let below = std::fs::read_dir(dir.join("slaves")).ok().and_then(|mut all| all.next()?.ok());
    match below.and_then(|entry| entry.path().canonicalize().ok()) {
        Some(below) if depth > 0 => whole_disk(&below, depth - 1),
        _ => dir.to_path_buf(),
    }
}

fn kind(filesystem: &str, device: Option<&str>, rotational: Option<bool>) -> DiskKind {
    let device = device.unwrap_or_default();
    match filesystem {
        "tmpfs" | "ramfs" | "devtmpfs" => return DiskKind::Memory,
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "ceph" | "fuse.sshfs" => {
            return DiskKind::Network;
        }
        _ => {}
    }
    // A virtual disk calls itself rotating or not as the host happened to set it.
    if device.starts_with("vd") || device.starts_with("xvd") {
        return DiskKind::Virtual;
    }
    match (device.starts_with("nvme"), rotational) {
        (true, _) => DiskKind::Nvme,
        (_, Some(true)) => DiskKind::Rotational,
        (_, Some(false)) => DiskKind::SolidState,
        (_, None) => DiskKind::Unknown,
    }
}
