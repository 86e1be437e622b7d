//! The measurement of a first run: in time, kept, found again, and behind a full calibration.

#![allow(clippy::disallowed_methods, reason = "the test is about time that passes")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use motley_calibrate::library;
use motley_calibrate::measure::ExpertKind;
use motley_calibrate::measure::quick::{QUICK_BUDGET, QuickOptions, quick};
use motley_cost::CalibrationFile;
use motley_ggml::{Runtime, Seam};
use motley_machine::{DeviceKind, Provenance};
use motley_model::ModelSpec;
use motley_model::gguf::{GgmlType, GgufWriter, Metadata, StringArray, TensorDesc};

const HIDDEN: u64 = 256;
const WIDTH: u64 = 512;
const EXPERTS: u64 = 64;

/// A model of one layer whose experts lie in a file large enough to measure a disk with.
fn model(folder: &Path) -> PathBuf {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "qwen3moe");
    let tokens: StringArray = (0..100).map(|token| format!("t{token}")).collect();
    metadata.insert("tokenizer.ggml.tokens", tokens);
    for (key, value) in [
        ("block_count", 1),
        ("context_length", 512),
        ("embedding_length", HIDDEN as u32),
        ("feed_forward_length", WIDTH as u32),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("expert_count", EXPERTS as u32),
        ("expert_used_count", 8),
    ] {
        metadata.insert(&format!("qwen3moe.{key}"), value);
    }
    let tensor =
        |name: &str, dims: &[u64], ty| TensorDesc { name: name.into(), dims: dims.into(), ty };
    let tensors = [
        tensor("token_embd.weight", &[HIDDEN, 100], GgmlType::Q8_0),
        tensor("blk.0.attn_q.weight", &[HIDDEN, HIDDEN], GgmlType::F16),
        tensor("blk.0.ffn_gate_inp.weight", &[HIDDEN, EXPERTS], GgmlType::F32),
        tensor("blk.0.ffn_gate_exps.weight", &[HIDDEN, WIDTH, EXPERTS], GgmlType::Q4_0),
        tensor("blk.0.ffn_up_exps.weight", &[HIDDEN, WIDTH, EXPERTS], GgmlType::Q4_0),
        tensor("blk.0.ffn_down_exps.weight", &[WIDTH, HIDDEN, EXPERTS], GgmlType::Q4_0),
    ];
    let mut writer = GgufWriter::new(Vec::new(), &metadata, &tensors).unwrap();
    for tensor in &tensors {
        let len = tensor.ty.tensor_bytes(&tensor.dims).unwrap();
        writer.tensor(&tensor.name, &vec![7; len as usize]).unwrap();
    }
    let path = folder.join("tiny.gguf");
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

#[test]
fn it_ends_in_time_is_found_again_and_a_full_calibration_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = model(folder.path());
    let (spec, _) = ModelSpec::open(&file).unwrap();
    let runtime = Runtime::start(Seam::Registered).unwrap();
    let budget = QUICK_BUDGET;
    let options = QuickOptions { budget, threads: Some(1), file, program: "test".into() };
    let (start, mut last) = (Instant::now(), 0.0);
    let found = quick(&runtime, &spec, &options, &mut |_, share| last = share).unwrap();
    let took = start.elapsed();
    assert!(took < budget.mul_f64(1.5), "{took:?}");
    assert!(last > 0.1, "{last}");
    check_content(&found, &spec);

    let library = tempfile::tempdir().unwrap();
    let cpu = found.provenance.cpu.clone();
    let kinds = ExpertKind::of_model(&spec);
    let path = library::save(library.path(), &found).unwrap();
    let again = library::for_kinds(library.path(), &cpu, &kinds).unwrap();
    assert_eq!((again.0, again.1.provenance.quick), (path, true));
    let other = [ExpertKind { ty: GgmlType::Q5_K, shape: (4096, 512) }];
    assert!(library::for_kinds(library.path(), &cpu, &other).is_none());

    let mut full = found;
    full.provenance.quick = false;
    full.provenance.date = "2001-01-31T12:00:00Z".into();
    let full_path = library::save(library.path(), &full).unwrap();
    let best = |kinds: &[ExpertKind]| library::for_kinds(library.path(), &cpu, kinds).unwrap().0;
    assert_eq!((best(&kinds), best(&other)), (full_path.clone(), full_path.clone()));
    assert_eq!(library::newest(library.path(), &cpu).unwrap().0, full_path);
}

fn check_content(found: &CalibrationFile, spec: &ModelSpec) {
    let kind = ExpertKind::of_model(spec)[0];
    assert_eq!((kind.ty, kind.shape), (GgmlType::Q4_0, (HIDDEN as u32, WIDTH as u32)));
    assert!(kind.is_measured_in(found), "{found:?}");
    let points = &found.experts[0].measured;
    assert!(points.first().is_some_and(|p| p.tokens == 1), "{points:?}");
    assert!(points.last().is_some_and(|p| p.tokens > 1 && p.took_us > 0.0), "{points:?}");
    assert!(found.memory[0].gb_per_s > 0.0);
    assert!(found.disk.as_ref().is_some_and(|disk| disk.gb_per_s > 0.0), "{found:?}");
    // The description carries what was measured, and says so.
    let cpu = found.machine.first(DeviceKind::Cpu).unwrap();
    assert_eq!((found.machine.provenance, &cpu.assumed), (Provenance::Measured, &None));
    assert_eq!(cpu.bandwidth_gb_per_s, found.memory[0].gb_per_s.max(0.1));
}
