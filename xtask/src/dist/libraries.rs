//! Which libraries belong beside the program: ggml's backends, and of llama.cpp's libraries those
//! that are asked for by name. Everything else must be of the system, and on every one.

use super::build::{Built, Facts};
use super::processor::Processor;
use super::tools::output;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries, beside what loads programs, that every Linux with glibc and C++ programs has.
const OF_THE_SYSTEM: [&str; 7] = [
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
];
/// Libraries that only one of our libraries asks for; it is left out where they are missing.
const OF_A_DRIVER: [(&str, &str); 1] = [("libggml-vulkan.so", "libvulkan.so.1")];
/// Where in the output of llama.cpp's build its libraries lie.
const FOLDERS: [&str; 4] = ["lib", "lib64", "build/bin", "build/common"];

/// Where ggml names its CPU levels, in the folder of llama.cpp's crate.
const LEVELS: &str = "llama.cpp/ggml/src/CMakeLists.txt";
/// How a level is named there.
const LEVEL: &str = "ggml_add_cpu_backend_variant(";

/// Name in the package, and where that file is. Fails when the kernels of a level, or those of
/// a feature that was asked for, are missing.
pub(super) fn collect(facts: &Facts, built: &Built) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut open = Vec::new();
    for entry in fs::read_dir(built.llama_out.join("backends")).context("no backends were built")? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?.to_string_lossy();
        if name.ends_with(".so") {
            open.push((name.into_owned(), path));
        }
    }
    open.push((String::new(), built.binary.clone()));
    while let Some((name, path)) = open.pop() {
        for needed in needed(facts.processor, &path)? {
            if found.contains_key(&needed) || is_elsewhere(facts.processor, &name, &needed) {
                continue;
            }
            match place(&built.llama_out, &needed) {
                Some(path) => open.push((needed, path)),
                None => bail!("{}: asks for {needed}, which not every system has", path.display()),
            }
        }
        if !name.is_empty() {
            found.insert(name, path);
        }
    }
    let levels = fs::read_to_string(facts.llama_folder.join(LEVELS))?;
    let levels = facts.processor.levels_of(&levels_of_ggml(&levels));
    ensure!(!levels.is_empty(), "{LEVELS}: no level of {}", facts.processor.name);
    let levels = levels.into_iter().map(|level| format!("libggml-cpu-{level}.so"));
    let vulkan = built.features.contains("vulkan").then(|| OF_A_DRIVER[0].0.to_owned());
    let missing: Vec<String> =
        levels.chain(vulkan).filter(|name| !found.contains_key(name)).collect();
    ensure!(missing.is_empty(), "not built: {}", missing.join(", "));
    Ok(found)
}

/// Names of all levels, of every processor.
fn levels_of_ggml(list: &str) -> Vec<&str> {
    let names = list.lines().filter_map(|line| line.trim().strip_prefix(LEVEL));
    names.filter_map(|rest| rest.split([' ', ')']).next()).collect()
}

fn is_elsewhere(processor: &Processor, library: &str, needed: &str) -> bool {
    needed == processor.loader
        || OF_THE_SYSTEM.contains(&needed)
        || OF_A_DRIVER.contains(&(library, needed))
}

fn place(out: &Path, name: &str) -> Option<PathBuf> {
    let places = FOLDERS.iter().map(|folder| out.join(folder).join(name));
    places.filter_map(|path| path.canonicalize().ok()).next()
}

fn needed(processor: &Processor, path: &Path) -> Result<Vec<String>> {
    Ok(read_needed(&output(processor.gnu_program("objdump").arg("-p").arg(path))?))
}

/// Names of libraries, from what `objdump -p` prints.
fn read_needed(headers: &str) -> Vec<String> {
    let lines = headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    lines.map(|name| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::processor::PROCESSORS;
    use super::*;

    #[test]
    fn names_of_libraries_are_read() {
        let headers = "Dynamic Section:\n  NEEDED               libm.so.6\n  \
                       NEEDED   libllama.so.0\n  SONAME  libx.so\n";
        assert_eq!(read_needed(headers), ["libm.so.6", "libllama.so.0"]);
    }

    #[test]
    fn every_level_of_the_pinned_ggml_is_known() {
        for (processor, levels, count) in [
            (&PROCESSORS[0], ["x64", "sapphirerapids"], 14),
            (&PROCESSORS[1], ["armv8.0_1", "armv9.2_2"], 8),
        ] {
            let facts = Facts::read(processor).unwrap();
            let list = fs::read_to_string(facts.llama_folder.join(LEVELS)).unwrap();
            let found = processor.levels_of(&levels_of_ggml(&list));
            assert!(levels.iter().all(|level| found.contains(level)), "{found:?}");
            assert_eq!(found.len(), count, "{found:?}");
        }
    }

    #[test]
    fn vulkan_is_the_systems_for_its_backend_alone() {
        let is_elsewhere = |library, needed| is_elsewhere(&PROCESSORS[1], library, needed);
        assert!(is_elsewhere("libggml-vulkan.so", "libvulkan.so.1"));
        assert!(!is_elsewhere("", "libvulkan.so.1"));
        assert!(is_elsewhere("", "libc.so.6") && is_elsewhere("", "ld-linux-aarch64.so.1"));
        assert!(!is_elsewhere("", "ld-linux-x86-64.so.2"), "of another processor");
    }
}
