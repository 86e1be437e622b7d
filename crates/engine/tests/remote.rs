//! Experts on other machines: a head with workers says, bit for bit, what it says alone, with whole
//! layers on each, with experts divided or had by several, and when workers fail on the way. Workers
//! are the real ones, asked without a network.

use motley_cost::exchange;
use motley_engine::blocks::remote::{Answer, Connect, Deadlines, Exchange, RemoteWorker, Welcomed};
use motley_engine::worker::{ExpertWorker, RowsIn, WorkerOptions};
use motley_engine::{
    Engine, EngineOptions, Phase, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets,
};
use motley_model::ModelSpec;
use motley_plan::ExpertKernels;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use motley_wire::frame::{Rows, computed_bytes, rows_bytes};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Experts a worker has room for: fewer than it has.
const SLOTS: u32 = 12;

/// A worker in this process, which fails after so many answers.
struct Near {
    worker: Arc<Mutex<ExpertWorker>>,
    answers_left: Arc<AtomicI64>,
}

impl Exchange for Near {
    fn exchange(&mut self, _: u64, rows: Rows, _: Duration) -> Result<Answer, String> {
        if self.answers_left.fetch_sub(1, Relaxed) <= 0 {
            return Err("it fell asleep".into());
        }
        let Rows { decode, layer, experts, places, hidden, .. } = rows;
        let phase = if decode { Phase::Decode } else { Phase::Prefill };
        let rows = RowsIn { experts: &experts, places: &places, hidden: &hidden };
        let mut out = Vec::new();
        let mut worker = self.worker.lock().unwrap();
        worker.compute(phase, layer.into(), rows, &mut out).map_err(|error| error.to_string())?;
        Ok(Answer { rows: out, compute_us: 1 })
    }

    fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// One worker: its layers and experts, and how often it answers.
#[derive(Clone)]
struct Part {
    layers: Vec<u16>,
    experts: (u16, u16),
    answers: i64,
}

fn threads() -> ThreadSets {
    ThreadSets::both(ThreadSet::anywhere(1))
}

fn worker(runtime: Runtime, model: &Path) -> Arc<Mutex<ExpertWorker>> {
    let options = WorkerOptions::new(SLOTS, threads());
    let opened = ModelSpec::open(model).expect("a model");
    Arc::new(Mutex::new(ExpertWorker::load(runtime, opened, &options).expect("a worker")))
}

fn engine(runtime: Runtime, model: &Path) -> Engine {
    let options = EngineOptions {
        threads: threads(),
        repack: false,
        kernels: ExpertKernels::exact(),
        ..EngineOptions::default()
    };
    Engine::load(runtime, model, &options, &mut |_| true).expect("the model loads")
}

/// What the head says: the logits of a prompt and of a few tokens after it.
fn logits(engine: &Engine) -> Vec<Vec<f32>> {
    let shape = SessionOptions { chunk_tokens: 32, ..SessionOptions::default() };
    let mut session = engine.session(&shape).expect("a session");
    session.prefill(&(100..150).collect::<Vec<_>>()).expect("a prompt");
    let mut all = vec![session.logits().to_vec()];
    for token in 7..11 {
        session.decode(token).expect("a token");
        all.push(session.logits().to_vec());
    }
    all
}

/// Gives the head these workers.
fn with_workers(engine: &mut Engine, (runtime, model): (Runtime, &Path), parts: &[Part]) {
    let workers: Vec<RemoteWorker> = parts
        .iter()
        .enumerate()
        .map(|(number, part)| {
            let near = worker(runtime, model);
            let answers_left = Arc::new(AtomicI64::new(part.answers));
            let connect: Connect = Arc::new(move || {
                if answers_left.load(Relaxed) <= 0 {
                    return Err("nobody is there".into());
                }
                let (worker, answers_left) = (Arc::clone(&near), Arc::clone(&answers_left));
                Ok(Box::new(Near { worker, answers_left }) as Box<dyn Exchange>)
            });
            let (layers, experts) = (part.layers.clone(), part.experts);
            let welcomed = Welcomed { build: String::new(), layers, experts };
            let name = format!("worker {number}");
            RemoteWorker {
                name,
                welcomed,
                slots: SLOTS,
                keeps: None,
                computes_alike: true,
                connect,
            }
        })
        .collect();
    engine.use_workers(workers, Deadlines::default());
}

/// What predictions count is what travels.
#[test]
fn frames_have_the_bytes_that_are_predicted() {
    for (pairs, hidden_rows, width) in [(0, 0, 1), (3, 2, 4), (64, 8, 2048)] {
        let predicted = exchange::request_bytes(pairs, hidden_rows, width);
        let frame = rows_bytes(pairs as usize, hidden_rows as usize, width as usize);
        assert_eq!(predicted, frame as u64);
        let predicted = exchange::answer_bytes(pairs, width);
        assert_eq!(predicted, computed_bytes(pairs as usize, width as usize) as u64);
    }
}

#[test]
fn heads_say_the_same_whatever_workers_compute() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    for arch in Arch::DISTINCT {
        let Some(model) = synthetic(arch) else { return };
        let mut head = engine(runtime, &model);
        let expected = logits(&head);
        let layers: Vec<u16> =
            head.spec().expert_layers().map(|layer| layer.layer as u16).collect();
        let half = head.spec().experts as u16 / 2;
        let all = (0, 2 * half);
        let part = |layers: &[u16], experts| Part { layers: layers.into(), experts, answers: 9999 };
        let ways: [(&str, Vec<Part>); 4] = [
            ("one has all", vec![part(&layers, all)]),
            ("layers", vec![part(&layers[..1], all), part(&layers[1..], all)]),
            ("experts", vec![part(&layers, (0, half)), part(&layers, (half, 2 * half))]),
            ("some have all, some half", vec![part(&layers, all), part(&layers, (0, half))]),
        ];
        for (name, parts) in ways {
            with_workers(&mut head, (runtime, &model), &parts);
            assert!(logits(&head) == expected, "{arch:?}, {name}");
            let figures = head.workers();
            assert!(figures.iter().all(|one| one.rows > 0 && one.recomputed == 0), "{figures:?}");
        }
    }
}

#[test]
fn what_does_not_come_back_is_computed_at_home() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let Some(model) = synthetic(Arch::Qwen3moe) else { return };
    let mut head = engine(runtime, &model);
    let expected = logits(&head);
    let layers: Vec<u16> = head.spec().expert_layers().map(|layer| layer.layer as u16).collect();
    let experts = (0, head.spec().experts as u16);
    let one = Part { layers: layers.clone(), experts, answers: 9999 };
    with_workers(&mut head, (runtime, &model), &[one]);
    logits(&head);
    let head_rows = head.workers()[0].rows;
    for answers in [0, 1, 2, 5, 8] {
        let fails = Part { layers: layers.clone(), experts, answers };
        let stays = Part { answers: 9999, ..fails.clone() };
        with_workers(&mut head, (runtime, &model), std::slice::from_ref(&fails));
        assert!(logits(&head) == expected, "alone, {answers} answers");
        let lost = head.workers()[0].clone();
        assert!(!lost.answers && lost.lost.is_some(), "{lost:?}");
        assert_eq!(lost.recomputed > 0, answers > 0, "{lost:?}");
        with_workers(&mut head, (runtime, &model), &[fails, stays]);
        assert!(logits(&head) == expected, "beside another, {answers} answers");
        // The other has it all, and nothing is left for the head.
        let record = head.workers();
        let rows: u64 = record.iter().map(|worker| worker.rows).sum();
        assert!(record[1].answers && rows == head_rows, "{record:?}");
    }
}
