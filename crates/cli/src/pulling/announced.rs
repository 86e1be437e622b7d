//! What is said of a model before it is fetched: does it run here, from where, how fast, how much
//! comes, whether there is room, and what would fit better. Renders and serialises; decides nothing
//! but what fits better, which is `motley_plan::quantisation`'s.

use super::{Fetched, Found, as_offered};
use crate::commands::plan::regime;
use crate::page::{Fact, facts, printable};
use anyhow::Result;
use motley_hub::{Source, Variant, free_bytes};
use motley_model::format_bytes;
use motley_plan::quantisation::{Offered, better_fit};
use motley_plan::{Asked, Decision};
use serde::Serialize;
use std::path::PathBuf;

/// A model before it is fetched, and after; as it is printed with `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Announcement {
    name: String,
    quantisation: String,
    /// Why this one, where the name left it open.
    why: Option<String>,
    repo: Option<String>,
    commit: Option<String>,
    files: Vec<FileReport>,
    bytes: u64,
    /// Of which are here.
    here_bytes: u64,
    folder: PathBuf,
    free_bytes: Option<u64>,
    runs_here: bool,
    why_not: Option<String>,
    fits_better: Option<BetterFit>,
    plan: Option<Decision>,
    fetched: Option<FetchReport>,
}

/// A file of the model.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    bytes: u64,
    sha256: Option<String>,
}

/// Another quantisation.
#[derive(Debug, Serialize)]
struct BetterFit {
    quantisation: String,
    bytes: u64,
    /// Whether it is smaller: the chosen one does not stay in memory.
    smaller: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct FetchReport {
    path: PathBuf,
    bytes: u64,
    took_s: f64,
}

impl Announcement {
    /// Of a model, on this machine.
    pub(crate) fn of(found: &Found<'_>, asked: &Asked) -> Result<Self> {
        let decision = found.decision(asked)?;
        let (repo, commit) = match &found.offer.source {
            Source::Hub { repo, commit } => (Some(repo.to_string()), Some(commit.clone())),
            Source::Url(_) => (None, None),
        };
        let pull = &found.pull;
        let file = |file: &motley_hub::RemoteFile| FileReport {
            path: file.path.clone(),
            bytes: file.bytes,
            sha256: file.sha256.clone(),
        };
        Ok(Self {
            name: found.name(),
            quantisation: found.offer.variants[found.variant].label.clone(),
            why: found.why.clone(),
            repo,
            commit,
            files: pull.files.iter().map(file).collect(),
            bytes: pull.total_bytes(),
            here_bytes: pull.bytes_here(),
            folder: pull.folder().to_owned(),
            free_bytes: free_bytes(pull.folder()),
            fits_better: decision.as_ref().ok().and_then(|decision| fits_better(found, decision)),
            runs_here: decision.is_ok(),
            why_not: decision.as_ref().err().cloned(),
            plan: decision.ok(),
            fetched: None,
        })
    }

    /// Why it does not run here, where it does not.
    pub(crate) fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// With what came of it.
    pub(crate) fn with(self, fetched: &Fetched) -> Self {
        let Fetched { path, bytes, took_s } = fetched;
        let report = FetchReport { path: path.clone(), bytes: *bytes, took_s: *took_s };
        Self { fetched: Some(report), ..self }
    }

    /// For people.
    pub(crate) fn page(&self, width: u16) -> String {
        let mut lines: Vec<Fact> = Vec::new();
        if let Some(why) = &self.why {
            let label = printable(&self.quantisation);
            lines.push(("Quantisation", format!("{label}: {why}")));
        }
        match (&self.plan, &self.why_not) {
            (Some(plan), _) => lines.extend(running(plan)),
            (None, why) => {
                lines.push(("Runs here", format!("no: {}", why.as_deref().unwrap_or_default())));
            }
        }
        lines.push(("Download", self.download()));
        lines.push(("Disk", self.disk()));
        if let Some(better) = &self.fits_better {
            lines.push(better.fact());
        }
        format!(" {}\n{}", printable(&self.name), facts(&lines, width))
    }

    fn download(&self) -> String {
        let files = match self.files.len() {
            1 => "one file".to_owned(),
            files => format!("{files} parts"),
        };
        let all = format_bytes(self.bytes);
        match self.here_bytes {
            0 => format!("{all} in {files}"),
            here if here == self.bytes => format!("nothing: {all} in {files} are here"),
            here => {
                let rest = format_bytes(self.bytes - here);
                format!("{rest} of {all} in {files}; {} are here", format_bytes(here))
            }
        }
    }

    fn disk(&self) -> String {
        let folder = self.folder.display();
        let Some(free) = self.free_bytes else { return format!("{folder}") };
        let to_come = self.bytes - self.here_bytes;
        let room = format_bytes(free);
        match free >= to_come {
            true => format!("{room} free in {folder}"),
            false => {
                let missing = format_bytes(to_come - free);
                format!("too little: {room} free in {folder}, {missing} are missing")
            }
        }
    }
}

impl BetterFit {
    fn fact(&self) -> Fact {
        let (name, size) = (printable(&self.quantisation), format_bytes(self.bytes));
        match self.smaller {
            true => ("Fits better", format!("{name} ({size}) would stay in memory")),
            false => ("Fits too", format!("{name} ({size}) would stay in memory, with more bits")),
        }
    }
}

fn running(plan: &Decision) -> Vec<Fact> {
    let expected = match plan.costs_measured {
        true => format!(
            "{:.1} tokens/s, and {:.0}/s of a prompt",
            plan.decode.tokens_per_s, plan.prefill.tokens_per_s
        ),
        false => "not known before this machine is measured (`motley calibrate`)".to_owned(),
    };
    vec![
        ("Runs here", format!("yes, {}", regime(plan))),
        ("From", plan.why.loading.clone()),
        ("Memory", plan.why.memory.clone()),
        ("Devices", plan.why.devices.clone()),
        ("Expected", expected),
    ]
}

fn fits_better(found: &Found<'_>, decision: &Decision) -> Option<BetterFit> {
    let variants = &found.offer.variants;
    // A model of which parts are missing fits nowhere.
    let offered = |variant: &'_ Variant| match variant.is_whole() {
        true => variant.bytes,
        false => u64::MAX,
    };
    let offers: Vec<Offered<'_>> = variants
        .iter()
        .map(|variant| Offered { bytes: offered(variant), ..as_offered(variant) })
        .collect();
    let beside =
        decision.budget.largest_sensible_bytes().saturating_sub(decision.model.total_bytes);
    let better = better_fit(&offers, found.variant, beside, found.room_bytes?)?;
    Some(BetterFit {
        quantisation: variants[better].label.clone(),
        bytes: variants[better].bytes,
        smaller: variants[better].bytes < variants[found.variant].bytes,
    })
}
