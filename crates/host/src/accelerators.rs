//! GPUs and NPUs the kernel shows. Presence only: whether a library can use one is another
//! question, answered by ggml's devices and the `npu` crate.

use std::path::{Path, PathBuf};

use crate::files;

/// Something beside the CPU that could compute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accelerator {
    /// What it is.
    pub kind: AcceleratorKind,
    /// Who makes it, where known (`NVIDIA`, `Qualcomm`).
    pub vendor: Option<&'static str>,
    /// Kernel driver, where told (`i915`, `amdxdna`).
    pub driver: Option<String>,
    /// How the system shows it (`card0`, `/dev/accel/accel0`).
    pub node: String,
    /// PCI device number (`0x2684`), where there is one.
    pub device_id: Option<String>,
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
            device_id: None,
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
        device_id: text("device"),
    })
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
