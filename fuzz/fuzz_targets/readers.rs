//! Any bytes as every file Motley reads beside models: profiles, traces of three kinds, machines,
//! calibrations, plans and records of runs. Nothing panics, and what was read and is written again is
//! read as the same.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use motley_cost::CalibrationFile;
use motley_machine::Machine;
use motley_plan::Decision;
use motley_profile::{Origin, Profile};
use motley_trace::import::{Format, waste::WasteModel};
use motley_trace::{RunRecord, Summary, Trace, TraceReader, TraceWriter};

/// Experts of a trace that are counted: a header of 40 bytes may name millions.
const COUNTED_EXPERTS: usize = 1 << 14;

fuzz_target!(|bytes: &[u8]| {
    profile(bytes);
    trace(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    machine(text);
    calibration(text);
    plan(text);
    run_record(text);
});

fn profile(bytes: &[u8]) {
    let Ok(profile) = Profile::read(bytes) else { return };
    let mut written = Vec::new();
    profile.write(&mut written).expect("a vector takes it");
    assert_eq!(Profile::read(&*written).expect("its own text"), profile);
}

fn trace(bytes: &[u8]) {
    let mut reader = Cursor::new(bytes.to_vec());
    let Ok(format) = Format::of(&mut reader) else { return };
    let model = WasteModel { name: "m".into(), experts: 8 };
    let Ok(mut source) = format.source(reader, model) else { return };
    let Ok(trace) = Trace::collect(&mut *source) else { return };
    let mut writer = TraceWriter::new(Vec::new(), trace.header.clone()).expect("a checked header");
    trace.visits.iter().for_each(|visit| writer.write_visit(visit).expect("a checked visit"));
    let written = writer.finish().expect("a vector takes it");
    let mut again = TraceReader::new(&*written).expect("its own text");
    assert_eq!(Trace::collect(&mut again).expect("its own text"), trace);
    count(&trace);
}

/// What is made of a trace: its figures, and a profile that can be kept.
fn count(trace: &Trace) {
    let header = &trace.header;
    if usize::from(header.layers) * usize::from(header.experts) > COUNTED_EXPERTS {
        return;
    }
    let summary = Summary::collect(&mut trace.source()).expect("it was read before");
    assert!(summary.mean_imbalance() >= 0.0);
    let built = Profile::collect(&mut trace.source(), Origin::default());
    let mut written = Vec::new();
    built.expect("it was read before").write(&mut written).expect("a vector takes it");
    Profile::read(&*written).expect("its own text");
}

fn machine(text: &str) {
    let Ok(machine) = Machine::parse(text, "any") else { return };
    machine.devices.iter().for_each(|device| {
        let _ = device.total_memory_bytes();
    });
    let written = toml::to_string(&machine).expect("plain structs");
    assert_eq!(Machine::parse(&written, "its own").expect("its own text"), machine);
}

fn calibration(text: &str) {
    let Ok(calibration) = CalibrationFile::parse(text, "any") else { return };
    let written = calibration.to_toml();
    assert_eq!(CalibrationFile::parse(&written, "its own").expect("its own text"), calibration);
}

fn plan(text: &str) {
    let Ok(plan) = Decision::from_json(text) else { return };
    let written = plan.to_json().expect("plain structs");
    assert_eq!(Decision::from_json(&written).expect("its own text"), plan);
}

fn run_record(text: &str) {
    let Ok(record) = RunRecord::parse(text) else { return };
    let written = serde_json::to_string(&record).expect("plain structs");
    assert_eq!(RunRecord::parse(&written).expect("its own text"), record);
}
