//! `motley show`: what a model is made of, and where it lies; of one that is not downloaded, what
//! its headers say. The description is `inspect`'s.

use crate::args::{Global, Show};
use crate::commands::inspect::Inspected;
use crate::model_name::only_one;
use crate::page::{Fact, facts, width_of};
use crate::pulling::{Found, Hub};
use crate::terminal::{print_json, print_page};
use anyhow::Result;
use motley_hub::{KeptError, ModelName, find};
use motley_model::{ModelFiles, ModelSpec};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(crate) fn run(global: &Global, show: &Show, columns: Option<u16>) -> Result<()> {
    let name = ModelName::parse(&show.name)?;
    let shown = match &name {
        ModelName::Local(path) => Shown::here(path.display().to_string(), path)?,
        _ => Shown::named(&show.name, &name)?,
    };
    let inspected = Inspected::of(&shown.spec, &shown.files, show.context);
    let downloaded = shown.downloaded;
    if global.json {
        let report =
            Report { model: &shown.name, downloaded, paths: &shown.files.paths, inspected };
        return print_json(&serde_json::to_string_pretty(&report)?);
    }
    let width = width_of(columns);
    let place: Fact = match downloaded {
        true => ("Lies at", first(&shown.files).display().to_string()),
        false => ("Lies at", format!("the hub; `motley pull {}` fetches it", shown.name)),
    };
    print_page(&format!("{}\n\n{}", inspected.page(&shown.name, width), facts(&[place], width)))
}

/// A model, and where it is.
struct Shown {
    name: String,
    spec: ModelSpec,
    files: ModelFiles,
    downloaded: bool,
}

impl Shown {
    fn here(name: String, path: &Path) -> Result<Self> {
        let (spec, files) = ModelSpec::open(path)?;
        Ok(Self { name, spec, files, downloaded: true })
    }

    fn named(typed: &Path, name: &ModelName) -> Result<Self> {
        let hub = Hub::of_environment()?;
        match find(&hub.settings, name) {
            Ok(kept) => Self::here(typed.display().to_string(), &only_one(typed, kept)?),
            Err(KeptError::NotHere { .. }) => {
                let found = Found::new(&hub, name, &[], None)?;
                let name = found.name();
                Ok(Self { name, spec: found.spec, files: found.files, downloaded: false })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    /// What to type for it.
    model: &'a str,
    downloaded: bool,
    /// Where its files are, or would be.
    paths: &'a [PathBuf],
    #[serde(flatten)]
    inspected: Inspected,
}

fn first(files: &ModelFiles) -> &Path {
    files.paths.first().map_or(Path::new(""), PathBuf::as_path)
}
