//! Runs, and many of them as a table: medians of each way under each budget, and ratios against
//! the first way of the same round.

use motley_cost::statistics::{median, quartiles};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One run: where, what came of it, and how busy the machine was before.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CappedRun {
    /// The limit.
    pub budget_bytes: u64,
    /// Name of the way.
    pub way: String,
    /// Round, and number of the prompt.
    pub round: usize,
    /// Highest memory of the group, page cache too.
    pub peak_bytes: u64,
    /// How the process ended when it was not well (a signal, an exit code).
    pub failed: Option<String>,
    /// Load average of the last minute when it began.
    pub load: String,
    /// What the worker said.
    pub outcome: Value,
}

/// One run as one line, for watching.
pub(super) fn line(run: &CappedRun) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let outcome = match &run.failed {
        Some(how) => format!("failed: {how}"),
        None => format!("prefill {:.2}/s, decode {:.2}/s", prefill(run), decode(run)),
    };
    let (budget, peak) = (mib(run.budget_bytes), mib(run.peak_bytes));
    let CappedRun { round, way, load, .. } = run;
    format!("{budget} MiB, round {round}, {way}: {outcome}; peak {peak} MiB, load {load}")
}

/// Everything as a Markdown table.
pub fn table(runs: &[CappedRun]) -> String {
    let mut text = String::from(
        "| budget | way | runs | prefill/s | decode/s | decode ÷ first (quartiles) | MB/token | hits | \
         disk busy | highest memory |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut budgets: Vec<u64> = runs.iter().map(|run| run.budget_bytes).collect();
    budgets.sort_unstable();
    budgets.dedup();
    for budget in budgets {
        let group: Vec<&CappedRun> = runs.iter().filter(|run| run.budget_bytes == budget).collect();
        let mut ways: Vec<&str> = Vec::new();
        for run in &group {
            if !ways.contains(&run.way.as_str()) {
                ways.push(&run.way);
            }
        }
        let first = ways[0];
        ways.iter().for_each(|way| text.push_str(&row(&group, first, way)));
    }
    text
}

fn row(group: &[&CappedRun], first: &str, way: &str) -> String {
    let of_way: Vec<&&CappedRun> = group.iter().filter(|run| run.way == way).collect();
    let well: Vec<&&&CappedRun> = of_way.iter().filter(|run| run.failed.is_none()).collect();
    let middle = |figure: fn(&CappedRun) -> f64| {
        median(&well.iter().map(|run| figure(run)).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let ratios: Vec<f64> = well
        .iter()
        .filter_map(|run| {
            let other =
                group.iter().find(|other| other.way == first && other.round == run.round)?;
            (other.failed.is_none()).then(|| decode(run) / decode(other))
        })
        .collect();
    let [ratio_low, ratio, ratio_high] = quartiles(&ratios).unwrap_or_default();
    let peak = of_way.iter().map(|run| run.peak_bytes).max().unwrap_or(0);
    let budget = of_way.first().map_or(0, |run| run.budget_bytes);
    format!(
        "| {:.1} GiB | {way} | {} of {} | {:.2} | {:.2} | {:.2} ({:.2}–{:.2}) | {:.0} | {:.1} % | {:.0} % | {:.2} GiB |\n",
        budget as f64 / (1u64 << 30) as f64,
        well.len(),
        of_way.len(),
        middle(prefill),
        middle(decode),
        ratio,
        ratio_low,
        ratio_high,
        middle(|run| of_phase(run, "disk_bytes") / 1e6 / of_phase(run, "tokens").max(1.0)),
        100.0 * middle(hits),
        100.0 * middle(|run| of_phase(run, "disk_busy_s") / of_phase(run, "time_s").max(1e-9)),
        peak as f64 / (1u64 << 30) as f64,
    )
}

fn prefill(run: &CappedRun) -> f64 {
    let phase = &run.outcome["record"]["prefill"];
    number(&phase["tokens"]) / number(&phase["time_s"]).max(1e-9)
}

fn decode(run: &CappedRun) -> f64 {
    of_phase(run, "tokens") / of_phase(run, "time_s").max(1e-9)
}

fn hits(run: &CappedRun) -> f64 {
    let hits = of_phase(run, "hits") + of_phase(run, "guessed_hits");
    hits / of_phase(run, "experts").max(1.0)
}

/// A figure of the decode phase.
fn of_phase(run: &CappedRun, key: &str) -> f64 {
    number(&run.outcome["record"]["decode"][key])
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(way: &str, round: usize, tokens_per_s: f64) -> CappedRun {
        let decode = json!({
            "tokens": 10, "time_s": 10.0 / tokens_per_s, "experts": 100, "hits": 25,
            "guessed_hits": 25, "disk_bytes": 20_000_000, "disk_busy_s": 5.0 / tokens_per_s,
        });
        CappedRun {
            budget_bytes: 1 << 30,
            way: way.into(),
            round,
            peak_bytes: 1 << 29,
            failed: None,
            load: "0.1".into(),
            outcome: json!({"record": {"prefill": {"tokens": 4, "time_s": 2.0}, "decode": decode}}),
        }
    }

    #[test]
    fn ratios_are_of_runs_of_the_same_round() {
        let mut runs = vec![run("bare", 0, 1.0), run("motley", 0, 5.0)];
        runs.extend([run("bare", 1, 2.0), run("motley", 1, 6.0)]);
        let table = table(&runs);
        let expected = "| 1.0 GiB | motley | 2 of 2 | 2.00 | 5.50 | 4.00 (3.50–4.50) | 2 | 50.0 % | 50 % | 0.50 GiB |";
        assert!(table.contains(expected), "{table}");
    }

    #[test]
    fn a_failed_run_counts_only_as_failed() {
        let mut killed = run("bare", 0, 1.0);
        killed.failed = Some("signal: 9".into());
        let table = table(&[killed, run("motley", 0, 5.0)]);
        assert!(table.contains("| bare | 0 of 1 |"), "{table}");
        assert!(table.contains("| motley | 1 of 1 | 2.00 | 5.00 | 0.00 "), "{table}");
    }
}
