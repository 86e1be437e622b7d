//! Which paths stay usable and why: the model, Motley's own folders, what this machine is read
//! from, and what drivers of devices need. Computes a list; opens nothing.

use std::path::{Path, PathBuf};

/// What a process may do with a path and all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read files, list folders.
    Read,
    /// Read, write, make and remove files and folders; no links, sockets or devices.
    Own,
    /// Read, write and control devices; nothing is made.
    Device,
}

/// One path that stays usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// With a `*` at its end: every entry of its folder whose name begins so.
    pub path: PathBuf,
    pub access: Access,
    /// Why.
    pub reason: &'static str,
}

/// What the rest of a run needs of files and the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Files of the model.
    pub model_files: Vec<PathBuf>,
    /// Folders in which files are written, and what is written and is no plain file.
    pub own_paths: Vec<PathBuf>,
    /// Whether a GPU or NPU computes: its driver needs libraries, nodes and caches.
    pub devices: bool,
    /// Folder of a device's library that loads more when it is first used.
    pub libraries: Option<PathBuf>,
    /// TCP ports of those the user named; no other may be connected to.
    pub outgoing_ports: Vec<u16>,
}

impl Allowed {
    /// Every rule, for a user whose home is `home`. Paths that do not exist are among them.
    pub fn rules(&self, home: Option<&Path>) -> Vec<Rule> {
        let model = self.model_files.iter().map(|path| rule(path, Access::Read, "the model"));
        let own = self.own_paths.iter().map(|path| rule(path, Access::Own, "Motley's files"));
        let library = |path| rule(path, Access::Read, "libraries loaded late");
        let libraries = self.libraries.iter().map(library);
        let system = SYSTEM.iter().map(|(path, reason)| rule(path, Access::Read, reason));
        let devices = DEVICES.iter().filter(|_| self.devices);
        let devices = devices.map(|(path, access, reason)| rule(path, *access, reason));
        let caches = SHADER_CACHES.iter().filter(|_| self.devices);
        let caches = caches.filter_map(|path| Some(home?.join(path)));
        let caches = caches.map(|path| rule(path, Access::Own, "compiled kernels of drivers"));
        model.chain(own).chain(libraries).chain(system).chain(devices).chain(caches).collect()
    }
}

fn rule(path: impl AsRef<Path>, access: Access, reason: &'static str) -> Rule {
    Rule { path: path.as_ref().to_owned(), access, reason }
}

/// What is read of the machine while a model runs, by this crate and by the C library; a `*` at the
/// end stands for every entry, wherever its link leads.
const SYSTEM: &[(&str, &str)] = &[
    ("/proc/self", "own control group, mounts and memory; the C library: bounds of the stack"),
    ("/proc/meminfo", "memory that is free"),
    ("/proc/vmstat", "pages read again"),
    ("/proc/pressure", "waiting for memory and cores"),
    ("/proc/loadavg", "how busy the machine is"),
    ("/proc/cpuinfo", "the processor's name; instruction sets"),
    ("/proc/stat", "the C library: number of cores"),
    ("/proc/sys/vm/overcommit_memory", "the C library: whether to give memory back"),
    ("/sys/fs/cgroup", "limits and pressure of control groups"),
    ("/sys/devices/system/cpu", "cores and caches"),
    ("/sys/devices/system/node", "memory nodes"),
    ("/sys/kernel/mm/transparent_hugepage", "huge pages"),
    ("/sys/class/powercap/*", "energy counters of the processor"),
    ("/sys/class/power_supply/*", "what leaves the battery"),
];

/// What drivers of GPUs and NPUs need beyond that, while they compute; a `*` at the end stands for
/// any name that begins so.
const DEVICES: &[(&str, Access, &str)] = &[
    ("/usr", Access::Read, "libraries loaded late, lists of drivers"),
    ("/lib", Access::Read, "libraries loaded late"),
    ("/lib64", Access::Read, "libraries loaded late"),
    ("/opt", Access::Read, "vendors' libraries (ROCm, oneAPI, ONNX Runtime)"),
    ("/etc", Access::Read, "lists of drivers (Vulkan, OpenCL), their settings, ld.so.cache"),
    ("/proc", Access::Read, "the NVIDIA driver's own files"),
    ("/sys", Access::Read, "devices as drivers list them"),
    ("/dev/dri", Access::Device, "GPUs of Intel and AMD"),
    ("/dev/kfd", Access::Device, "ROCm"),
    ("/dev/nvidia*", Access::Device, "CUDA: GPUs, control, memory, parts of a GPU"),
    ("/dev/accel", Access::Device, "NPUs"),
    ("/dev/udmabuf", Access::Device, "Mesa: memory shared with a device"),
    ("/dev/shm", Access::Own, "memory shared between parts of a driver"),
    ("/dev/null", Access::Device, "libraries' sink"),
    ("/dev/urandom", Access::Read, "names of temporary files"),
];

/// Where drivers keep kernels they compiled, below the user's home.
const SHADER_CACHES: &[&str] = &[
    ".cache/mesa_shader_cache",
    ".cache/mesa_shader_cache_db",
    ".cache/nvidia",
    ".cache/neo_compiler_cache",
    ".cache/AMD",
    ".nv/ComputeCache",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(devices: bool) -> Allowed {
        Allowed {
            model_files: vec!["/models/a-1.gguf".into(), "/models/a-2.gguf".into()],
            own_paths: vec!["/users/u/.local/state/motley".into()],
            devices,
            libraries: None,
            outgoing_ports: Vec::new(),
        }
    }

    fn paths(rules: &[Rule], access: Access) -> Vec<&str> {
        let of = rules.iter().filter(|rule| rule.access == access);
        of.map(|rule| rule.path.to_str().unwrap()).collect()
    }

    #[test]
    fn without_devices_only_own_paths_are_written_and_no_folder_of_models_is_named() {
        let rules = allowed(false).rules(Some(Path::new("/users/u")));
        assert_eq!(paths(&rules, Access::Own), ["/users/u/.local/state/motley"]);
        assert_eq!(paths(&rules, Access::Device), [""; 0]);
        let read = paths(&rules, Access::Read);
        assert!(read.contains(&"/models/a-1.gguf") && read.contains(&"/models/a-2.gguf"));
        let system = |path: &&str| path.starts_with("/proc/") || path.starts_with("/sys/");
        let others: Vec<_> = read.iter().filter(|path| !system(path)).collect();
        assert_eq!(others, [&"/models/a-1.gguf", &"/models/a-2.gguf"]);
    }

    #[test]
    fn devices_add_drivers_and_their_caches() {
        let rules = allowed(true).rules(Some(Path::new("/users/u")));
        assert!(paths(&rules, Access::Device).contains(&"/dev/dri"));
        assert!(paths(&rules, Access::Read).contains(&"/usr"));
        let own = paths(&rules, Access::Own);
        assert!(own.contains(&"/users/u/.nv/ComputeCache") && own.contains(&"/dev/shm"));
        assert!(!own.contains(&"/users/u"), "{own:?}");
        assert!(rules.iter().all(|rule| !rule.reason.is_empty()));
        let homeless = allowed(true).rules(None);
        assert!(paths(&homeless, Access::Own).iter().all(|path| !path.contains(".cache")));
    }
}
