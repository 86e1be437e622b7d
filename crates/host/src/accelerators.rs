//! GPUs and NPUs the kernel shows. Presence only: whether a library can use one is another
//! question, answered by ggml's devices and the `npu` crate.

use std::path::{Path, PathBuf};

use crate::files;

/// Something beside the CPU that could compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accelerator {
    pub kind: AcceleratorKind,
    /// Who makes it, where known (`NVIDIA`, `Qualcomm`).
    pub vendor: Option<&'static str>,
    /// Kernel driver, where known (`i915`, `amdxdna`).
    pub driver: Option<String>,
    /// How the system shows it (`card0`, `/dev/accel/accel0`).
    pub node: String,
    /// How it is connected, where it is on PCIe.
    pub pcie: Option<PcieLink>,
}

/// A PCIe connection as it is under load: links clock down at rest, so the speed is the
/// device's highest; the number of lanes is what was negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcieLink {
    /// Transfers per second and lane, in 10⁶ (16000 for PCIe 4.0).
    pub mt_per_s: u32,
    /// Lanes in use.
    pub lanes: u32,
}

impl PcieLink {
    /// Peak of one direction: encoded 8b/10b up to PCIe 2.0 (5 GT/s), 128b/130b from 3.0.
    pub fn gb_per_s(self) -> f64 {
        let encoding = if self.mt_per_s > 5000 { 128.0 / 130.0 } else { 0.8 };
        f64::from(self.mt_per_s) * 1e-3 * f64::from(self.lanes) * encoding / 8.0
    }
}

/// Graphics or neural.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorKind {
    /// Graphics processor.
    Gpu,
    /// Neural processor.
    Npu,
}

/// All that are shown, GPUs first.
pub fn read(root: &Path) -> Vec<Accelerator> {
    let mut found = of_kind(root, AcceleratorKind::Gpu, "drm", "card");
    found.extend(of_kind(root, AcceleratorKind::Npu, "accel", "accel"));
    found
}

/// Those the kernel's class lists, then those of vendors not among them.
fn of_kind(root: &Path, kind: AcceleratorKind, class: &str, prefix: &str) -> Vec<Accelerator> {
    let mut found = of_class(root, class, prefix, kind);
    for node in KNOWN_NODES.iter().filter(|node| node.kind == kind) {
        let seen = found.iter().any(|other| other.vendor == Some(node.vendor));
        if !seen && root.join(node.path).exists() {
            found.push(node.accelerator());
        }
    }
    found
}

/// A device file that only one vendor's driver makes, for drivers outside drm and accel.
struct KnownNode {
    path: &'static str,
    kind: AcceleratorKind,
    vendor: &'static str,
    driver: &'static str,
}

const fn gpu(path: &'static str, vendor: &'static str, driver: &'static str) -> KnownNode {
    KnownNode { path, kind: AcceleratorKind::Gpu, vendor, driver }
}

const fn npu(path: &'static str, vendor: &'static str, driver: &'static str) -> KnownNode {
    KnownNode { path, kind: AcceleratorKind::Npu, vendor, driver }
}

const KNOWN_NODES: &[KnownNode] = &[
    gpu("dev/nvidia0", "NVIDIA", "nvidia"),
    gpu("dev/kgsl-3d0", "Qualcomm", "kgsl"),
    gpu("dev/mali0", "Arm", "mali"),
    npu("dev/fastrpc-cdsp", "Qualcomm", "fastrpc"),
    npu("dev/adsprpc-smd", "Qualcomm", "adsprpc"),
    npu("dev/davinci_manager", "Huawei", "davinci"),
    npu("dev/apusys", "MediaTek", "apusys"),
    npu("dev/vertex10", "Samsung", "vertex"),
    npu("dev/apex_0", "Google", "apex"),
    npu("dev/edgetpu-soc", "Google", "edgetpu"),
];

impl KnownNode {
    fn accelerator(&self) -> Accelerator {
        Accelerator {
            kind: self.kind,
            vendor: Some(self.vendor),
            driver: Some(self.driver.into()),
            node: format!("/{}", self.path),
            pcie: None,
        }
    }
}

/// Entries `<prefix><number>` of `/sys/class/<class>` (`card0`, not `card0-HDMI-A-1`).
fn of_class(root: &Path, class: &str, prefix: &str, kind: AcceleratorKind) -> Vec<Accelerator> {
    let entries = std::fs::read_dir(root.join("sys/class").join(class));
    let numbered = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix(prefix));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut dirs: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|e| e.path()).filter(numbered).collect();
    dirs.sort();
    dirs.iter().filter_map(|dir| of_dir(dir, kind)).collect()
}

fn of_dir(dir: &Path, kind: AcceleratorKind) -> Option<Accelerator> {
    let device = dir.join("device");
    let text = |name: &str| files::read(&device.join(name)).map(|text| text.trim().to_owned());
    let driver = text("uevent").and_then(|uevent| {
        uevent.lines().find_map(|l| Some(l.strip_prefix("DRIVER=")?.to_owned()))
    });
    let vendor = text("vendor").and_then(|id| pci_vendor(&id));
    // Frame buffers of servers and virtual machines draw and do not compute.
    let draws_only = matches!(
        driver.as_deref(),
        Some("ast" | "mgag200" | "bochs-drm" | "cirrus" | "simple-framebuffer" | "virtio-pci")
    );
    (!draws_only).then(|| Accelerator {
        kind,
        vendor: vendor.or_else(|| driver.as_deref().and_then(driver_vendor)),
        driver,
        node: dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
        pcie: pcie(&device),
    })
}

/// From `max_link_speed` (`16.0 GT/s PCIe`) and `current_link_width` (`8`).
fn pcie(device: &Path) -> Option<PcieLink> {
    let speed = files::read(&device.join("max_link_speed"))?;
    let gt_per_s: f64 = speed.split_ascii_whitespace().next()?.parse().ok()?;
    let lanes: u32 = files::value(&device.join("current_link_width"))?;
    let known = (1.0..=1000.0).contains(&gt_per_s) && (1..=32).contains(&lanes);
    known.then_some(PcieLink { mt_per_s: (gt_per_s * 1e3) as u32, lanes })
}

fn pci_vendor(id: &str) -> Option<&'static str> {
    match id {
        "0x10de" => Some("NVIDIA"),
        "0x1002" | "0x1022" => Some("AMD"),
        "0x8086" => Some("Intel"),
        "0x17cb" => Some("Qualcomm"),
        "0x1da3" => Some("Habana"),
        _ => None,
    }
}

/// Drivers of devices that are not on PCI.
fn driver_vendor(driver: &str) -> Option<&'static str> {
    match driver {
        "msm_dpu" | "msm" | "adreno" => Some("Qualcomm"),
        "panfrost" | "panthor" | "mali" | "ethosu" => Some("Arm"),
        "rocket" | "RKNPU" => Some("Rockchip"),
        "asahi" => Some("Apple"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    fn shown(tree: &Tree) -> Vec<String> {
        let line = |a: Accelerator| {
            format!(
                "{:?} {} {} {}",
                a.kind,
                a.vendor.unwrap_or("?"),
                a.driver.unwrap_or_default(),
                a.node
            )
        };
        read(tree.root()).into_iter().map(line).collect()
    }

    #[test]
    fn a_laptop_with_both() {
        let tree = Tree::new(&[
            ("sys/class/drm/card0/device/vendor", "0x8086\n"),
            ("sys/class/drm/card0/device/uevent", "DRIVER=xe\nPCI_CLASS=30000\n"),
            ("sys/class/drm/card0-eDP-1/status", "connected\n"),
            ("sys/class/drm/card1/device/vendor", "0x10de\n"),
            ("sys/class/drm/card1/device/uevent", "DRIVER=nvidia\n"),
            ("dev/nvidia0", ""),
            ("sys/class/accel/accel0/device/vendor", "0x8086\n"),
            ("sys/class/accel/accel0/device/uevent", "DRIVER=intel_vpu\n"),
        ]);
        assert_eq!(
            shown(&tree),
            ["Gpu Intel xe card0", "Gpu NVIDIA nvidia card1", "Npu Intel intel_vpu accel0"]
        );
    }

    #[test]
    fn links_are_read_where_they_are_known() {
        let tree = Tree::new(&[
            ("sys/class/drm/card0/device/max_link_speed", "16.0 GT/s PCIe\n"),
            ("sys/class/drm/card0/device/current_link_width", "8\n"),
            ("sys/class/drm/card1/device/max_link_speed", "Unknown\n"),
            ("sys/class/drm/card1/device/current_link_width", "255\n"),
        ]);
        let links: Vec<_> = read(tree.root()).into_iter().map(|a| a.pcie).collect();
        let link = PcieLink { mt_per_s: 16_000, lanes: 8 };
        assert_eq!(links, [Some(link), None]);
        assert!((link.gb_per_s() - 15.75).abs() < 0.01);
        let old = PcieLink { mt_per_s: 5000, lanes: 16 };
        assert_eq!(old.gb_per_s(), 8.0);
    }

    #[test]
    fn a_phone_shows_device_files() {
        let tree =
            Tree::new(&[("dev/kgsl-3d0", ""), ("dev/fastrpc-cdsp", ""), ("dev/adsprpc-smd", "")]);
        let expected =
            ["Gpu Qualcomm kgsl /dev/kgsl-3d0", "Npu Qualcomm fastrpc /dev/fastrpc-cdsp"];
        assert_eq!(shown(&tree), expected);
    }

    #[test]
    fn a_server_draws_only() {
        let tree = Tree::new(&[("sys/class/drm/card0/device/uevent", "DRIVER=ast\n")]);
        assert!(shown(&tree).is_empty() && shown(&Tree::new(&[])).is_empty());
    }
}
