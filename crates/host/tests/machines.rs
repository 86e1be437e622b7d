//! Whole machines as folders of files: what every reader says about each. The phones must come
//! out as the machine files of the same name describe them (A7).

use std::path::Path;

use expect_test::{Expect, expect};
use motley_host::disk::DiskKind;
use motley_host::energy::{Missing, Scope};
use motley_host::power::PowerSource;
use motley_host::{
    accelerators, cpu_name, disk, energy, huge_pages, load, memory, power, pressure, refaults,
    topology,
};
use motley_testkit::machine_tree::Tree;

/// The iPhones of A7 have no such files; their machine files stand alone.
const PHONES: [&str; 5] =
    ["mate-40-pro", "honor-v30-pro", "galaxy-a56", "meizu-21", "xiaomi-15-pro"];

#[test]
fn phones_have_the_clusters_of_their_machine_files() {
    for name in PHONES {
        let tree = Tree::fixture(name);
        let machine = motley_machine::find(name).unwrap();
        let found = topology::read(tree.root()).unwrap().machine_clusters("cpu", 0.0);
        assert_eq!(found.len(), machine.clusters.len(), "{name}");
        for (found, described) in found.iter().zip(&machine.clusters) {
            assert_eq!(
                (found.cores, found.role),
                (described.cores, described.role),
                "{name} {}",
                described.name
            );
            assert!((found.max_ghz - described.max_ghz).abs() < 0.006, "{name} {}", described.name);
            assert!(
                described.name.starts_with(&found.name),
                "{name}: {} {}",
                found.name,
                described.name
            );
        }
        assert_eq!(power::read(tree.root()), PowerSource::Battery { percent: Some(72) });
        assert_eq!(energy::find(tree.root()).meter.scope(), Scope::Machine);
        let kinds: Vec<_> = accelerators::read(tree.root()).iter().map(|a| a.kind).collect();
        assert!(kinds.contains(&accelerators::AcceleratorKind::Npu), "{name}");
        assert!(memory::read(tree.root()).unwrap().limit_bytes.is_none());
    }
}

#[test]
fn capacities_and_power_of_cores_are_what_the_system_tells() {
    let tree = Tree::fixture("meizu-21");
    let clusters = || topology::read(tree.root()).unwrap().machine_clusters("cpu", 0.0);
    let told = clusters().into_iter().map(|c| c.capacity.unwrap() * 1024.0).collect::<Vec<_>>();
    assert_eq!(told, [1024.0, 870.0, 817.0, 325.0]);
    assert!(clusters().iter().all(|cluster| cluster.power_scale == 1.0), "nothing is told");
    // As a device tree has them: four bytes, the highest first.
    let tell = |cpu: u32, coefficient: u32| {
        let bytes = coefficient.to_be_bytes();
        let path = format!("sys/devices/system/cpu/cpu{cpu}/of_node/dynamic-power-coefficient");
        tree.write(&path, std::str::from_utf8(&bytes).unwrap());
    };
    (2..8).for_each(|cpu| tell(cpu, if cpu == 7 { 350 } else { 280 }));
    assert!(clusters().iter().all(|cluster| cluster.power_scale == 1.0), "two are not told");
    (0..2).for_each(|cpu| tell(cpu, 100));
    let scales: Vec<_> = clusters().iter().map(|c| (c.power_scale * 350.0).round()).collect();
    assert_eq!(scales, [350.0, 280.0, 280.0, 100.0]);
}

/// One line per cluster: role, cores, CPUs, MHz.
fn check_clusters(name: &str, expected: Expect) {
    let topology = topology::read(Tree::fixture(name).root()).unwrap();
    let line = |c: &topology::Cluster| {
        let mhz = c.max_khz.map_or_else(|| "?".to_owned(), |khz| (khz / 1000).to_string());
        format!(
            "{:?} socket {} cores {} cpus {} {mhz} MHz\n",
            c.role,
            c.package,
            c.cores,
            c.cpus.len()
        )
    };
    expected.assert_eq(&topology.clusters.iter().map(line).collect::<String>());
}

#[test]
fn clusters_of_computers() {
    check_clusters(
        "hybrid-laptop",
        expect![[r#"
            Prime socket 0 cores 6 cpus 12 5000 MHz
            Efficiency socket 0 cores 8 cpus 8 3800 MHz
            Efficiency socket 0 cores 2 cpus 2 2500 MHz
        "#]],
    );
    check_clusters(
        "two-socket-server",
        expect![[r#"
            Prime socket 0 cores 32 cpus 64 4100 MHz
            Prime socket 1 cores 32 cpus 64 4100 MHz
        "#]],
    );
    check_clusters(
        "small-vm",
        expect![[r#"
            Prime socket 0 cores 2 cpus 2 ? MHz
        "#]],
    );
}

#[test]
fn the_laptop() {
    let tree = Tree::fixture("hybrid-laptop");
    let root = tree.root();
    let topology = topology::read(root).unwrap();
    assert_eq!((topology.cores(), topology.packages()), (16, 1));
    assert_eq!(topology.cache_bytes(3), 24 << 20);
    assert_eq!(cpu_name::read(root).unwrap(), "Intel(R) Core(TM) Ultra 7 155H");
    let encrypted = disk::of_path(root, Path::new("/models/x.gguf")).unwrap();
    assert_eq!((encrypted.kind, encrypted.filesystem.as_str()), (DiskKind::Nvme, "btrfs"));
    assert_eq!(encrypted.device.as_deref(), Some("nvme0n1"));
    assert_eq!(encrypted.model.as_deref(), Some("Example 1TB NVMe"));
    let archive = disk::of_path(root, Path::new("/archive/y.gguf")).unwrap();
    assert_eq!((archive.kind, archive.block_bytes), (DiskKind::Rotational, Some(4096)));
    assert_eq!(archive.size_bytes, Some(7_814_037_168 * 512));
    assert_eq!(disk::of_path(root, Path::new("/ram/z")).unwrap().kind, DiskKind::Memory);
    let drivers: Vec<_> = accelerators::read(root).into_iter().filter_map(|a| a.driver).collect();
    assert_eq!(drivers, ["i915", "nvidia", "intel_vpu"]);
    // RAPL is there and unreadable; the battery is what can be read.
    assert_eq!(energy::find(root).meter.name(), "battery BAT0");
    tree.write("sys/class/power_supply/BAT0/status", "Full\n");
    assert!(matches!(energy::find(root).missing, Some(Missing::Permission { .. })));
    assert_eq!(pressure::read(root).unwrap().some_avg10, 0.1);
}

#[test]
fn the_server() {
    let tree = Tree::fixture("two-socket-server");
    let root = tree.root();
    let topology = topology::read(root).unwrap();
    assert_eq!((topology.cores(), topology.packages(), topology.nodes.len()), (64, 2, 2));
    assert_eq!(topology.nodes[1].distances, [21, 10]);
    assert_eq!(topology.nodes[0].cpus.len(), 64);
    assert_eq!(topology.cache_bytes(3), 120 << 20);
    let memory = memory::read(root).unwrap();
    assert_eq!(memory.limit_bytes, Some(64 << 30));
    assert_eq!(memory.used_bytes, 4 << 30);
    assert_eq!(memory.room_bytes, 60 << 30);
    assert_eq!(refaults::read(root), Some(1203));
    let models = disk::of_path(root, Path::new("/models/x.gguf")).unwrap();
    assert_eq!((models.kind, models.filesystem.as_str()), (DiskKind::Nvme, "xfs"));
    let inside = disk::of_path(root, Path::new("/root")).unwrap();
    assert_eq!((inside.kind, inside.filesystem.as_str()), (DiskKind::Unknown, "overlay"));
    assert_eq!(energy::find(root).meter.name(), "RAPL package-0, package-1");
    assert!(accelerators::read(root).is_empty());
    assert_eq!(load::average(root).unwrap().one_min, 41.0);
}

#[test]
fn the_virtual_machine() {
    let tree = Tree::fixture("small-vm");
    let root = tree.root();
    let memory = memory::read(root).unwrap();
    assert_eq!((memory.limit_bytes, memory.room_bytes), (None, memory.available_bytes));
    assert_eq!(pressure::read(root).unwrap().full_total_us, 24_339_485);
    assert_eq!(refaults::read(root), Some(48_319_959));
    assert!(cpu_name::is_virtual(root));
    let disk = disk::of_path(root, Path::new("/home")).unwrap();
    assert_eq!((disk.kind, disk.device.as_deref()), (DiskKind::Virtual, Some("vda")));
    let huge = huge_pages::read(root).unwrap();
    assert_eq!(huge.transparent, Some(huge_pages::Transparent::Always));
    assert_eq!(energy::find(root).missing, Some(Missing::NotShown));
}
