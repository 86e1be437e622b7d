//! The importers on the real files beside the project, and on broken ones.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use motley_testkit::fixtures::shared;
use motley_trace::import::bigmoe::BigmoeReader;
use motley_trace::import::waste::{WasteModel, WasteReader};
use motley_trace::{Phase, Summary, Trace, TraceReader, TraceWriter};

/// The folder of real traces, or `None` with a word about it.
fn traces() -> Option<PathBuf> {
    shared("routing_traces")
}

fn open(path: PathBuf) -> BufReader<File> {
    BufReader::new(File::open(path).expect("trace file"))
}

#[test]
fn bigmoe_files_become_visits() {
    let Some(folder) = traces() else { return };
    let cases = [
        ("gemma", "google_gemma-4-26B-A4B-it-Q4_K_M", 30, 6, 29, 128, 28_260),
        ("gptoss", "gpt-oss-120b-Q4_K_M", 36, 2, 85, 64, 10_560),
        ("qwen", "Qwen3-30B-A3B-Q4_K_M", 48, 6, 28, 128, 44_766),
    ];
    for (file, model, layers, k, prompt, decoded, choices) in cases {
        let path = folder.join(format!("bigmoe-{file}.route.csv"));
        let trace =
            Trace::collect(&mut BigmoeReader::new(open(path)).expect("preamble")).expect("rows");
        assert_eq!(trace.header.model, model);
        assert_eq!((trace.header.layers, trace.header.experts, trace.header.k), (layers, 128, k));
        assert_eq!(trace.passes(Phase::Prefill), 1);
        assert_eq!(trace.passes(Phase::Decode), decoded);
        assert_eq!(trace.visits[0].tokens(), prompt);
        assert_eq!(trace.visits.len() as u64, (decoded + 1) * u64::from(layers));
        let chosen: usize = trace.visits.iter().map(|visit| visit.experts.len()).sum();
        assert_eq!(chosen, choices);
    }
}

#[test]
fn waste_files_become_visits_and_survive_our_own_format() {
    let Some(folder) = traces() else { return };
    let cases = [("kimi_300", 256, 26, 300), ("olmoe_299", 64, 16, 299)];
    for (file, experts, layers, tokens) in cases {
        let model = WasteModel { name: file.into(), experts };
        let path = folder.join(format!("waste-trace_{file}.jsonl"));
        let mut reader = WasteReader::new(open(path), model).expect("first line");
        let trace = Trace::collect(&mut reader).expect("lines");
        assert_eq!(trace.header.layers, layers);
        assert_eq!(trace.passes(Phase::Decode), tokens);

        let mut writer = TraceWriter::new(Vec::new(), trace.header.clone()).expect("header");
        trace.visits.iter().for_each(|visit| writer.write_visit(visit).expect("visit"));
        let text = writer.finish().expect("memory");
        let again = Trace::collect(&mut TraceReader::new(text.as_slice()).expect("header"));
        assert_eq!(again.expect("lines"), trace);
        let summary = Summary::collect(&mut trace.source()).expect("in memory");
        assert_eq!(summary.rows, tokens * u64::from(layers));
    }
}

#[test]
fn broken_foreign_files_are_refused_with_their_line() {
    let preamble = "# route_trace v1\n# model=/a/b.gguf arch=x n_layer=1 n_expert=4 n_expert_used=2\n\
        turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n";
    let read = |rows: &str| {
        let text = format!("{preamble}{rows}");
        let mut reader = BigmoeReader::new(text.as_bytes()).map_err(|error| error.to_string())?;
        Trace::collect(&mut reader).map_err(|error| error.to_string())
    };
    assert_eq!(read("0,1,0,0,0,3,0.5,0,0\n0,1,0,0,1,1,0.5,0,0\n").map(|t| t.visits.len()), Ok(1));
    assert_eq!(read("0,7,0,0,0,3,0.5,0,0").unwrap_err(), "line 4: column `phase` cannot be read");
    assert_eq!(read("0,1,0,0,0").unwrap_err(), "line 4: column `expert` cannot be read");
    let short = read("0,1,0,0,0,3,0.5,0,0\n0,1,1,0,0,3,0.5,0,0\n").unwrap_err();
    assert!(short.ends_with("field `e` has 1 entries, expected 2"), "{short}");
    let none = BigmoeReader::new("turn,phase\n".as_bytes()).expect_err("no preamble").to_string();
    assert_eq!(none, "line 1: the preamble lacks `# model=`");

    let model = WasteModel { name: "m".into(), experts: 4 };
    let lines = "{\"tok\":0,\"layers\":[[0,1]]}\n{\"tok\":1,\"layers\":[[0,1],[2,3]]}\n";
    let mut reader = WasteReader::new(lines.as_bytes(), model).expect("first line");
    let refused = Trace::collect(&mut reader).expect_err("two layers").to_string();
    assert_eq!(refused, "line 2: field `layers` has 2 entries, expected 1");
}
