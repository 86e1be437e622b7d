//! Artefacts, and how each gets into a root: as a person would do it, without a network.

use super::super::build::Facts;
use super::root::Root;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Where an artefact lies in a root before it is installed.
const BROUGHT: &str = "/srv";

/// How an artefact is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Unpacked into `/opt`.
    Archive,
    /// By dpkg.
    Deb,
    /// By pip into an environment.
    Wheel,
    /// It is a root itself.
    Image,
}

/// One file that is given to people.
#[derive(Debug, Clone)]
pub struct Artefact {
    pub path: PathBuf,
    pub way: Way,
}

impl Way {
    /// By the end of a file's name; `None` for what is not installed.
    fn of(name: &str) -> Option<Self> {
        let ends = [
            (".tar.gz", Self::Archive),
            (".deb", Self::Deb),
            (".whl", Self::Wheel),
            ("-oci.tar", Self::Image),
        ];
        ends.into_iter().find(|(end, _)| name.ends_with(end)).map(|(_, way)| way)
    }

    /// The program once it is installed.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Archive => "/opt/motley/bin/motley",
            Self::Deb => "/usr/bin/motley",
            Self::Wheel => "/opt/environment/bin/motley",
            Self::Image => "/usr/local/bin/motley",
        }
    }
}

impl Artefact {
    /// The file's name.
    pub fn name(&self) -> String {
        self.path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
    }
}

/// What `folder` holds of this version for the processor, by name.
pub(super) fn artefacts(folder: &Path, facts: &Facts) -> Result<Vec<Artefact>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?.to_string_lossy();
        if let Some(way) = Way::of(&name).filter(|_| is_of(facts, &name)) {
            found.push(Artefact { path, way });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    anyhow::ensure!(!found.is_empty(), "{}: nothing to try; cargo xtask dist", folder.display());
    Ok(found)
}

fn is_of(facts: &Facts, name: &str) -> bool {
    let processor = [facts.processor.name, facts.processor.debian];
    name.contains(&facts.version) && processor.iter().any(|word| name.contains(word))
}

/// Installs `artefact` into `root`.
pub(super) fn install(root: &Root, artefact: &Artefact) -> Result<()> {
    let brought = format!("{BROUGHT}/{}", artefact.name());
    if artefact.way != Way::Image {
        root.copy(&artefact.path, &brought)?;
    }
    let steps: &[&[&str]] = match artefact.way {
        Way::Archive => &[
            &["mkdir", "-p", "/opt/motley"],
            &["tar", "-xzf", &brought, "-C", "/opt/motley", "--strip-components=1"],
        ],
        Way::Deb => &[&["dpkg", "--install", &brought], &["test", "-f", "/etc/motley/serve.env"]],
        Way::Wheel => &[
            &["python3", "-m", "venv", "/opt/environment"],
            &["/opt/environment/bin/pip", "install", "--quiet", "--no-index", &brought],
        ],
        Way::Image => &[],
    };
    steps.iter().try_for_each(|step| root.output(step).map(drop))
}

#[cfg(test)]
mod tests {
    use super::super::super::processor::PROCESSORS;
    use super::*;

    #[test]
    fn packages_for_another_processor_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let facts = Facts::read(&PROCESSORS[1]).unwrap();
        let version = &facts.version;
        let ours = [
            format!("motley-{version}-aarch64-linux.tar.gz"),
            format!("motley_{version}_arm64.deb"),
        ];
        let others = [format!("motley_{version}_amd64.deb"), "motley_0.0.1_arm64.deb".to_owned()];
        for name in ours.iter().chain(&others) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = artefacts(folder.path(), &facts).unwrap();
        assert_eq!(found.iter().map(Artefact::name).collect::<Vec<_>>(), ours);
    }

    #[test]
    fn a_way_follows_from_the_name() {
        assert_eq!(Way::of("motley-0.1.0-x86_64-linux.tar.gz"), Some(Way::Archive));
        assert_eq!(Way::of("motley_0.1.0_amd64.deb"), Some(Way::Deb));
        assert_eq!(Way::of("motley-0.1.0-x86_64-oci.tar"), Some(Way::Image));
        assert_eq!(Way::of("motley-0.1.0.cdx.json"), None);
        assert_eq!(Way::of("SHA256SUMS"), None);
    }
}
