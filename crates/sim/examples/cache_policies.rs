//! Writes the report on cache policies: `cache_policies <folder of traces> <output folder>`.
//! The folder holds the traces of BigMoeOnEdge (`bigmoe-*.route.csv`) and waste
//! (`waste-trace_*.jsonl`); all others are taken as Motley's own (`*.trace.jsonl`).

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use motley_sim::report::{ReportInput, cache_policy_report};
use motley_trace::import::bigmoe::BigmoeReader;
use motley_trace::import::waste::{WasteModel, WasteReader};
use motley_trace::{Trace, TraceReader};

/// Decode tokens of each made trace.
const MADE_TOKENS: u32 = 2000;
/// Seed of made traces.
const SEED: u64 = 1;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [traces, output] = arguments.as_slice() else {
        bail!("usage: cache_policies <folder of traces> <output folder>");
    };
    let mut files: Vec<PathBuf> =
        fs::read_dir(traces)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let wanted =
        |path: &&PathBuf| path.extension().is_some_and(|ext| ext == "csv" || ext == "jsonl");
    let traces = files
        .iter()
        .filter(wanted)
        .map(|path| read(path).with_context(|| path.display().to_string()))
        .collect::<Result<Vec<_>>>()?;
    let input = ReportInput { traces: &traces, made_tokens: MADE_TOKENS, seed: SEED };
    let report = cache_policy_report(&input)?;
    fs::create_dir_all(output)?;
    fs::write(output.join("cache-policies.md"), &report.markdown)?;
    for (file_name, svg) in &report.charts {
        fs::write(output.join(file_name), svg)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Trace> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = BufReader::new(File::open(path)?);
    Ok(if name.ends_with(".route.csv") {
        Trace::collect(&mut BigmoeReader::new(file)?)?
    } else if name.contains("kimi") {
        let model = WasteModel { name: "Kimi".into(), experts: 256 };
        Trace::collect(&mut WasteReader::new(file, model)?)?
    } else if name.contains("olmoe") {
        let model = WasteModel { name: "OLMoE-1B-7B".into(), experts: 64 };
        Trace::collect(&mut WasteReader::new(file, model)?)?
    } else {
        Trace::collect(&mut TraceReader::new(file)?)?
    })
}
