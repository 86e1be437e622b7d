//! Caches of keys and values: what a budget counts is what llama.cpp takes, for every architecture
//! and type, and layers that keep a window only compute what layers that keep everything do.

#[path = "support/mod.rs"]
mod support;

use motley_engine::{
    Engine, EngineOptions, Runtime, Seam, Session, SessionOptions, ThreadSet, ThreadSets,
};
use motley_model::gguf::GgmlType;
use motley_model::{KvType, ModelSpec};
use motley_plan::ModelNeeds;
use motley_testkit::synth::Arch;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use support::as_floats;
use tracing_subscriber::fmt::MakeWriter;

const TYPES: [KvType; 3] = [KvType::F16, KvType::Q8_0, KvType::Q4_0];
/// Those with windows among the architectures of the tests, of 128 tokens each.
const WINDOWED: [Arch; 2] = [Arch::GptOss, Arch::Gemma4];
/// llama.cpp prints megabytes with two digits.
const ROUNDED_BYTES: f64 = 0.01 * (1 << 20) as f64;

/// What llama.cpp says.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Said {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Said {
    /// What it took for keys and values, and in how many buffers.
    fn cache(&self) -> (f64, usize) {
        let said = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let sizes = said.lines().filter_map(|line| line.split("KV buffer size =").nth(1));
        let mib = |size: &str| size.trim().trim_end_matches("MiB").trim().parse::<f64>().unwrap();
        let sizes: Vec<f64> = sizes.map(mib).collect();
        (sizes.iter().sum::<f64>() * f64::from(1 << 20), sizes.len())
    }
}

fn engine(arch: Arch) -> Option<(Engine, ModelSpec)> {
    Some(load(&motley_testkit::fixtures::synthetic(arch)?))
}

fn load(model: &Path) -> (Engine, ModelSpec) {
    let (spec, _) = ModelSpec::open(model).expect("it reads");
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    (Engine::load(runtime, model, &options, &mut |_| true).expect("it loads"), spec)
}

fn taken(engine: &Engine, options: &SessionOptions) -> (f64, usize) {
    let said = Said::default();
    let listens = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(said.clone())
        .finish();
    let mut session =
        tracing::subscriber::with_default(listens, || engine.session(options)).expect("a session");
    session.prefill(&[1, 2, 3]).expect("it computes with it");
    session.decode(4).expect("it computes with it");
    said.cache()
}

#[test]
fn the_budget_counts_what_llama_cpp_takes() {
    for &arch in Arch::ALL {
        let Some((engine, spec)) = engine(arch) else { return };
        let needs = ModelNeeds::of(&spec);
        for kv in TYPES {
            for (context_tokens, windows) in [(5000, false), (5000, true), (300, true)] {
                let options = SessionOptions {
                    context_tokens,
                    kv,
                    windows,
                    chunk_tokens: 200,
                    ..SessionOptions::default()
                };
                let (bytes, buffers) = taken(&engine, &options);
                let counted = needs.budget(options.shape()).kv_bytes - needs.state_bytes;
                let (counted, rounded) = (counted as f64, ROUNDED_BYTES * buffers as f64);
                let what = format!("{arch}, {options:?}: {counted} counted, {bytes} taken");
                assert!(buffers > 0 && counted + rounded >= bytes, "{what}");
                assert!(counted <= bytes + rounded, "{what}");
                let saves = windows && context_tokens > 1000 && WINDOWED.contains(&arch);
                let whole = SessionOptions { windows: false, ..options };
                let whole = (needs.budget(whole.shape()).kv_bytes - needs.state_bytes) as f64;
                assert_eq!(saves, counted < 0.8 * whole, "{what}");
            }
        }
    }
}

fn session(engine: &Engine, windows: bool) -> Session {
    let options = SessionOptions {
        context_tokens: 1024,
        chunk_tokens: 96,
        windows,
        ..SessionOptions::default()
    };
    engine.session(&options).unwrap()
}

/// Logits after each of `tokens`.
fn logits(session: &mut Session, tokens: &[i32]) -> Vec<Vec<f32>> {
    let one = |token: &i32| {
        session.decode(*token).unwrap();
        session.logits().to_vec()
    };
    tokens.iter().map(one).collect()
}

fn assert_near(a: &[Vec<f32>], b: &[Vec<f32>], arch: Arch) {
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        assert!((a - b).abs() <= 0.02 * (1.0 + a.abs()), "{arch}: {a} and {b}");
    }
}

#[test]
fn windows_compute_what_whole_caches_do() {
    for arch in WINDOWED {
        // Floats, so that no expert is chosen otherwise for a last bit that was rounded otherwise.
        let Some(model) = motley_testkit::fixtures::synthetic(arch) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let floats = folder.path().join("floats.gguf");
        as_floats(&model, &floats, |tensor| tensor.ty != GgmlType::F32);
        let (engine, _) = load(&floats);
        // More than a window and a chunk: cells are used again.
        let prompt: Vec<i32> = (0..700).map(|at| 5 + at * 31 % 900).collect();
        let (mut whole, mut windows) = (session(&engine, false), session(&engine, true));
        whole.prefill(&prompt).unwrap();
        windows.prefill(&prompt).unwrap();
        let answer: Vec<i32> = (0..8).map(|at| 20 + at).collect();
        let expected = logits(&mut whole, &answer);
        assert_near(&logits(&mut windows, &answer), &expected, arch);
        // What tokens look back at is there after a few are taken back, and computed again.
        assert!(windows.truncate(700));
        assert_eq!(windows.len(), 700);
        assert_near(&logits(&mut windows, &answer), &expected, arch);
    }
}

#[test]
fn what_fell_out_of_a_window_cannot_be_gone_back_to() {
    for arch in WINDOWED {
        let Some((engine, _)) = engine(arch) else { return };
        let prompt: Vec<i32> = (0..700).map(|at| 5 + at * 31 % 900).collect();
        let (mut whole, mut windows) = (session(&engine, false), session(&engine, true));
        for (session, cuts) in [(&mut whole, true), (&mut windows, false)] {
            session.prefill(&prompt).unwrap();
            assert_eq!(session.truncate(100), cuts, "{arch}");
            assert_eq!(session.len(), if cuts { 100 } else { 700 });
            session.decode(7).unwrap();
            session.clear();
            assert!(session.is_empty());
            session.prefill(&prompt[..50]).unwrap();
        }
        assert_near(&[windows.logits().to_vec()], &[whole.logits().to_vec()], arch);
    }
}
