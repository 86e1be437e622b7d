//! What a trial found: as a table for people and as data. Names no place of the machine it ran on.

use super::super::floor::Floor;
use super::install::Artefact;
use super::speed::Speed;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    pub version: String,
    pub files: Vec<File>,
    pub rows: Vec<Row>,
    pub variants: Vec<Variant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// A program or library of the installed tree.
#[derive(Debug, Serialize)]
pub struct File {
    pub name: String,
    pub bytes: u64,
    pub floor: Floor,
}

/// One artefact in one root.
#[derive(Debug, Serialize)]
pub struct Row {
    pub artefact: String,
    pub root: String,
    pub bytes: u64,
    pub installs: bool,
    #[serde(flatten)]
    pub ran: Option<Ran>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What the installed program said.
#[derive(Debug, Serialize)]
pub struct Ran {
    pub said_version: String,
    /// Processor whose kernels were chosen.
    pub kernels: String,
    pub instructions: Vec<String>,
    pub gpus: Vec<String>,
    pub tokens: Vec<i64>,
}

/// One CPU level's kernels by themselves.
#[derive(Debug, Serialize)]
pub struct Variant {
    pub level: String,
    pub tokens: Vec<i64>,
    /// Why it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Row {
    /// Before anything was tried.
    pub(super) fn new(artefact: &Artefact, root: &str) -> Result<Self> {
        let bytes = artefact.path.metadata()?.len();
        let (artefact, root) = (artefact.name(), root.to_owned());
        Ok(Self { artefact, root, bytes, installs: false, ran: None, error: None })
    }
}

impl Ran {
    /// From what `--version`, `doctor --json` and `run --json` printed.
    pub(super) fn new(version: &str, doctor: &Value, answer: &Value) -> Result<Self> {
        let build = &doctor["build"];
        let names = |list: &Value, field: Option<&str>| -> Vec<String> {
            let items = list.as_array().into_iter().flatten();
            let items = items.map(|item| field.map_or(item, |field| &item[field]));
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let kernels = build["kernels"].as_str().context("doctor does not name the kernels")?;
        let tokens = tokens_of(answer);
        anyhow::ensure!(!tokens.is_empty(), "run generated nothing");
        Ok(Self {
            said_version: version.to_owned(),
            kernels: kernels.to_owned(),
            instructions: names(&build["used_instructions"], None),
            gpus: names(&build["gpus"], Some("description")),
            tokens,
        })
    }
}

/// What `run --json` generated.
pub(super) fn tokens_of(answer: &Value) -> Vec<i64> {
    answer["tokens"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
}

impl Report {
    /// What went wrong, in words; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        let rows = self.rows.iter().filter_map(|row| {
            let error = row.error.as_ref()?;
            Some(format!("{} in {}: {error}", row.artefact, row.root))
        });
        let mut faults: Vec<String> = rows.collect();
        let answers: BTreeSet<&[i64]> =
            self.rows.iter().filter_map(|row| Some(row.ran.as_ref()?.tokens.as_slice())).collect();
        if answers.len() > 1 {
            faults.push(format!("{} different answers to one prompt", answers.len()));
        }
        faults
    }

    /// Lines of at most 80 columns.
    pub fn table(&self) -> String {
        let mut text = String::from("artefact  root         MB  installs  runs  kernels\n");
        for row in &self.rows {
            let kind = kind_of(&row.artefact);
            let megabytes = row.bytes as f64 / 1e6;
            let (installs, runs) = (yes(row.installs), yes(row.ran.is_some()));
            let kernels = row.ran.as_ref().map_or("–", |ran| &ran.kernels);
            let root = &row.root;
            text += &format!(
                "{kind:<9} {root:<9} {megabytes:>5.1}  {installs:<8}  {runs:<4}  {kernels}\n"
            );
        }
        let ran = self.variants.iter().filter(|variant| variant.error.is_none()).count();
        text += &format!("{ran} of {} CPU levels run here\n", self.variants.len());
        if let Some(speed) = &self.speed {
            text += &format!(
                "of a native build's speed: prompt {:.3}, decode {:.3} (load {:.1} before)\n",
                speed.prefill_ratio, speed.decode_ratio, speed.load_one_min_before
            );
        }
        text
    }
}

/// `tar.gz`, `deb`, `whl` or `tar`.
fn kind_of(name: &str) -> &str {
    if name.ends_with(".tar.gz") { "tar.gz" } else { name.rsplit('.').next().unwrap_or(name) }
}

pub(super) fn yes(so: bool) -> &'static str {
    if so { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(root: &str, token: i64) -> Row {
        let doctor = json!({"build": {"kernels": "haswell", "used_instructions": ["AVX2"]}});
        let ran = Ran::new("motley 1", &doctor, &json!({"tokens": [token]})).unwrap();
        let artefact = "motley-1-x86_64-linux.tar.gz".to_owned();
        Row { artefact, root: root.into(), bytes: 1, installs: true, ran: Some(ran), error: None }
    }

    fn report(rows: Vec<Row>) -> Report {
        Report { version: "1".into(), files: Vec::new(), rows, variants: Vec::new(), speed: None }
    }

    #[test]
    fn the_same_answer_everywhere_is_no_fault_and_another_is_one() {
        assert!(report(vec![row("a", 1), row("b", 1)]).faults().is_empty());
        let faults = report(vec![row("a", 1), row("b", 2)]).faults();
        assert_eq!(faults, ["2 different answers to one prompt"]);
    }

    #[test]
    fn a_row_that_failed_is_a_fault_with_its_words() {
        let failed = Row { ran: None, error: Some("no libc".into()), ..row("a", 1) };
        let report = report(vec![failed]);
        assert_eq!(report.faults(), ["motley-1-x86_64-linux.tar.gz in a: no libc"]);
        assert!(report.table().contains("tar.gz    a "), "{}", report.table());
    }

    #[test]
    fn a_doctor_that_names_no_kernels_is_refused() {
        let error = Ran::new("motley 1", &json!({"build": {}}), &json!({"tokens": [1]}));
        assert!(error.unwrap_err().to_string().contains("kernels"));
    }
}
