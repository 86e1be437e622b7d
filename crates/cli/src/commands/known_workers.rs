//! `motley workers`: the workers this machine has met, whether they answer, and what they have done.

use crate::args::{Global, KnownWorkers};
use crate::page::{align_right, printable, table, width_of};
use crate::terminal::{print_json, print_page};
use crate::workers::{folder, resolve};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_model::format_bytes;
use motley_wire::{ControlClient, Fingerprint, Identity, Peers, WorkerFigures};
use serde::Serialize;
use std::time::Duration;

/// Longest one of them is waited for.
const ASK_TIME: Duration = Duration::from_secs(3);

/// Runs the command.
pub(crate) fn run(global: &Global, asked: &KnownWorkers, columns: Option<u16>) -> Result<()> {
    let folder = folder()?;
    let identity = Identity::load_or_make(&folder)?;
    let peers = Peers::load(&folder)?;
    let named: Vec<(String, Fingerprint)> = match asked.workers.is_empty() {
        true => met(&peers),
        false => asked.workers.iter().map(|name| of(&peers, name)).collect::<Result<_>>()?,
    };
    let rows: Vec<Row> =
        named.iter().map(|(name, peer)| Row::ask(name, *peer, &identity)).collect();
    if global.json {
        return print_json(&serde_json::to_string_pretty(&rows)?);
    }
    if rows.is_empty() {
        return print_page(
            "No worker is known here; `motley run MODEL --workers HOST:PORT` meets one that \
             `motley worker MODEL --pair` started.",
        );
    }
    print_page(&render(&rows, width_of(columns)))
}

/// Those with a port: heads of a worker on this machine are known by their address alone.
fn met(peers: &Peers) -> Vec<(String, Fingerprint)> {
    let has_port =
        |name: &str| name.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
    let workers = peers.iter().filter(|(name, _)| has_port(name));
    workers.map(|(name, peer)| (name.to_owned(), peer)).collect()
}

fn of(peers: &Peers, name: &str) -> Result<(String, Fingerprint)> {
    let peer = peers.of(name).with_context(|| {
        format!("worker {name} is not known here; `motley run MODEL --workers {name}` meets it")
    })?;
    Ok((name.to_owned(), peer))
}

/// One worker, as it is printed with `--json`.
#[derive(Serialize)]
struct Row {
    name: String,
    /// Whether it computes rows.
    serves: bool,
    /// Why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    heads: u64,
    requests: u64,
    rows: u64,
    failed: u64,
    compute_us: u64,
    disk_bytes: u64,
}

impl Row {
    fn ask(name: &str, peer: Fingerprint, identity: &Identity) -> Self {
        let (serves, figures, error) = match figures(name, peer, identity) {
            Ok((serves, figures)) => (serves, figures, None),
            Err(error) => (false, WorkerFigures::default(), Some(error.to_string())),
        };
        let WorkerFigures { requests, rows, failed, compute_us, disk_bytes, heads } = figures;
        let name = name.to_owned();
        Self { name, serves, error, heads, requests, rows, failed, compute_us, disk_bytes }
    }
}

fn figures(name: &str, peer: Fingerprint, identity: &Identity) -> Result<(bool, WorkerFigures)> {
    let address = resolve(name)?.to_string();
    let mut control = ControlClient::connect(&address, identity, peer, ASK_TIME)?;
    Ok((control.health()?, control.figures()?))
}

fn render(rows: &[Row], width: u16) -> String {
    let mut page = table(width, presets::UTF8_FULL_CONDENSED);
    page.set_header([
        "Worker",
        "state",
        "heads",
        "requests",
        "rows",
        "failed",
        "computing",
        "read",
    ]);
    for row in rows {
        let state = match (&row.error, row.serves) {
            (Some(_), _) => "does not answer".into(),
            (None, true) => "computes".into(),
            (None, false) => "its last rows failed".into(),
        };
        page.add_row([
            printable(&row.name),
            state,
            row.heads.to_string(),
            row.requests.to_string(),
            row.rows.to_string(),
            row.failed.to_string(),
            format!("{:.1} s", row.compute_us as f64 / 1e6),
            format_bytes(row.disk_bytes),
        ]);
    }
    align_right(&mut page, &[2, 3, 4, 5, 6, 7]);
    let why = |row: &Row| Some(format!("\n {}", printable(row.error.as_ref()?)));
    page.trim_fmt() + &rows.iter().filter_map(why).collect::<String>()
}
