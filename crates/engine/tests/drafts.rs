//! A draft model changes no answer: with one that agrees, one that knows nothing and one with little
//! room, the same tokens come as one by one, greedily and drawn, over several turns, after tokens
//! were taken back, answers stopped and everything forgotten. The model's experts come from a disk
//! that is slow by injected delays, so that a model in memory is worth asking; weights are floats
//! (see `guesses`).

#[path = "support/mod.rs"]
mod support;

use motley_engine::{
    DraftRefused, Engine, EngineOptions, FaultPlan, Finish, Generation, Loading, Runtime, Sampling,
    Seam, Session, SessionError, SessionOptions, Speculate, StreamingOptions, ThreadSet,
    ThreadSets,
};
use motley_model::gguf::GgmlType;
use motley_plan::budget::Budget;
use motley_testkit::fixtures::{synthetic, trained};
use motley_testkit::synth::Arch;
use motley_trace::{DraftRecord, SpeculationRecord};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use support::as_floats;

const ANSWER_TOKENS: usize = 100;
const SHAPE: SessionOptions = SessionOptions {
    context_tokens: 640,
    chunk_tokens: 64,
    kv: motley_model::KvType::F16,
    precise_attention: true,
    scores: false,
    windows: false,
    speculate: Speculate::Off,
};
/// Slots beside the least: most experts are read for each token.
const SPARE_SLOTS: u64 = 8;
/// How late every read is: a pass of the model then takes some times as long as one of its draft.
const DELAY_US: u64 = 1500;
/// So late that a token of the draft takes next to nothing beside one of the model, on a busy machine too.
const LONG_DELAY_US: u64 = 8000;

/// A model with experts on a slow disk, and the folder its file is in.
struct Slow {
    engine: Engine,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Slow {
    /// `model` with floats for everything, and reads that are so late.
    fn floats(runtime: Runtime, model: &Path, delay_us: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("floats.gguf");
        as_floats(model, &file, |tensor| tensor.ty != GgmlType::F32);
        let (spec, _) = motley_model::ModelSpec::open(&file).expect("a model");
        let budget =
            Budget::of(&spec, SessionOptions { speculate: Speculate::Auto, ..SHAPE }.shape());
        let late = FaultPlan { delay_per_mille: 1000, delay_us, ..FaultPlan::default() };
        let options = EngineOptions {
            loading: Loading::OnDemand,
            memory_bytes: Some(budget.smallest_bytes() + SPARE_SLOTS * budget.slot_bytes),
            streaming: StreamingOptions { faults: Some(late), ..StreamingOptions::default() },
            ..one_thread()
        };
        let engine = Engine::load(runtime, &file, &options, &mut |_| true).expect("it loads");
        Self { engine, file, _folder: folder }
    }

    /// A model in memory on the same threads.
    fn beside(&self, runtime: Runtime, file: &Path) -> Engine {
        let options =
            EngineOptions { threads_of: Some(self.engine.shared_threads()), ..one_thread() };
        Engine::load(runtime, file, &options, &mut |_| true).expect("it loads")
    }

    fn session(&self, draft: Option<Session>) -> Session {
        let speculate = if draft.is_some() { Speculate::Auto } else { Speculate::Off };
        let session = self.engine.session(&SessionOptions { speculate, ..SHAPE });
        let mut session = session.expect("a session");
        draft.into_iter().for_each(|draft| session.use_draft(draft).expect("it guesses"));
        session
    }
}

fn one_thread() -> EngineOptions {
    EngineOptions {
        loading: Loading::Mapped,
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        yields_cores: false,
        ..EngineOptions::default()
    }
}

fn prompt() -> Vec<i32> {
    (0..70).map(|at| 40 + (at * at) % 97).collect()
}

/// An answer to `prompt`, stopped after `most` tokens.
fn answer(session: &mut Session, prompt: &[i32], sampling: Sampling, most: usize) -> Vec<i32> {
    let generation = Generation { sampling, max_tokens: ANSWER_TOKENS, ignore_end: true };
    let mut tokens = Vec::new();
    let finish = session.generate(prompt, &generation, &mut |token| {
        tokens.push(token);
        let enough = most < ANSWER_TOKENS && tokens.len() == most;
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let ended = if most < ANSWER_TOKENS { Finish::Stopped } else { Finish::Length };
    assert_eq!(finish.expect("it answers"), ended);
    tokens
}

/// Everything that happens to a timeline: an answer, one that is stopped, one after tokens were
/// taken back, and one from the beginning. What was said, and how many tokens were kept each time.
fn conversation(session: &mut Session, sampling: Sampling) -> Vec<(Vec<i32>, u32)> {
    let mut said = Vec::new();
    let mut turn = |session: &mut Session, prompt: &[i32], most| {
        let tokens = answer(session, prompt, sampling, most);
        said.push((tokens, session.len()));
    };
    turn(session, &prompt(), ANSWER_TOKENS);
    turn(session, &[9, 8, 7, 6], 37);
    assert!(session.truncate(90));
    turn(session, &[5, 6, 7], ANSWER_TOKENS);
    session.clear();
    turn(session, &prompt()[10..], ANSWER_TOKENS);
    said
}

/// Says in a conversation with `draft` what it says without; what became of guesses.
fn says_the_same(model: &Slow, draft: Session, sampling: Sampling) -> SpeculationRecord {
    talks_the_same(model, draft, |session| conversation(session, sampling))
}

/// The same, of what `talk` has it say.
fn talks_the_same<T: PartialEq + Debug>(
    model: &Slow,
    draft: Session,
    talk: impl Fn(&mut Session) -> T,
) -> SpeculationRecord {
    let plain = talk(&mut model.session(None));
    let mut session = model.session(Some(draft));
    let drafted = talk(&mut session);
    assert_eq!(drafted, plain);
    let record = model.engine.record(&session);
    let made = record.speculation.expect("figures");
    println!("{made}; {:.3} s of {:.3} s", record.decode.draft_s, record.decode.time_s);
    let own = made.draft.expect("figures of the draft model");
    assert_eq!(made.passes + made.accepted, record.decode.tokens);
    assert!(own.drafted >= own.guessed && own.guessed >= own.accepted);
    assert!(made.guessed >= own.guessed && made.accepted >= own.accepted);
    assert!(record.prefill.draft_s > 0.0 && record.prefill.draft_s < record.prefill.time_s);
    assert!(record.decode.draft_s < record.decode.time_s);
    assert_eq!(record.decode.draft_s > 0.0, own.drafted > 0);
    made
}

fn own(made: SpeculationRecord) -> DraftRecord {
    made.draft.unwrap_or_default()
}

#[test]
fn a_draft_that_agrees_is_right_and_changes_nothing() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let Some(file) = synthetic(Arch::Qwen3moe) else { return };
    let model = Slow::floats(runtime, &file, DELAY_US);
    let small = model.beside(runtime, &model.file);
    let greedy = Sampling::default();
    let made = own(says_the_same(&model, small.session(&SHAPE).unwrap(), greedy));
    // How many are computed is a matter of time; those that are are right, but for the last bits.
    assert!(made.drafted > 0 && made.accepted * 10 >= made.guessed * 9, "{made:?}");
    // Where tokens are drawn the likeliest is often not what comes.
    let drawn = Sampling { temperature: 0.6, seed: 3, ..greedy };
    let made = own(says_the_same(&model, small.session(&SHAPE).unwrap(), drawn));
    assert!(made.drafted > 0, "{made:?}");
}

#[test]
fn a_draft_that_knows_nothing_and_one_with_little_room_change_nothing() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let files = (synthetic(Arch::Qwen3moe), synthetic(Arch::Olmoe));
    let (Some(file), Some(other)) = files else { return };
    let model = Slow::floats(runtime, &file, DELAY_US);
    let small = model.beside(runtime, &other);
    let made = own(says_the_same(&model, small.session(&SHAPE).unwrap(), Sampling::default()));
    assert!(made.drafted > 0 && made.accepted * 2 <= made.drafted, "{made:?}");
    // Full in the middle of the first answer.
    let short = SessionOptions { context_tokens: 100, ..SHAPE };
    let same = model.beside(runtime, &model.file);
    let made = own(says_the_same(&model, same.session(&short).unwrap(), Sampling::default()));
    assert!(made.accepted > 0, "{made:?}");
}

#[test]
fn a_trained_model_drafted_by_its_own_quantised_copy_says_the_same() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let (Some(file), Some(copy)) = (trained("f16"), trained("q4_k_m")) else { return };
    let model = Slow::floats(runtime, &file, LONG_DELAY_US);
    let small = model.beside(runtime, &copy);
    let greedy = Sampling::default();
    let made = |sampling, tokens| {
        let draft = small.session(&SHAPE).expect("a session");
        own(talks_the_same(&model, draft, |session| answer(session, &prompt(), sampling, tokens)))
    };
    let sure = made(greedy, 32);
    assert!(sure.accepted > 0 && sure.accepted * 2 > sure.guessed, "{sure:?}");
    let drawn = made(Sampling { temperature: 0.8, seed: 11, ..greedy }, 12);
    assert!(drawn.drafted > 0, "{drawn:?}");
}

#[test]
fn what_cannot_draft_is_refused() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let files = (synthetic(Arch::Qwen3moe), synthetic(Arch::Qwen35moe));
    let (Some(file), Some(recurrent)) = files else { return };
    let load =
        |file: &Path| Engine::load(runtime, file, &one_thread(), &mut |_| true).expect("it loads");
    let (engine, recurrent) = (load(&file), load(&recurrent));
    let refused = |session: SessionOptions, draft: &Engine| {
        let mut session = engine.session(&session).expect("a session");
        match session.use_draft(draft.session(&SHAPE).expect("a session")) {
            Err(SessionError::DraftRefused(reason)) => Some(reason),
            other => other.map(|()| None).expect("no other error"),
        }
    };
    let ahead = SessionOptions { speculate: Speculate::Auto, ..SHAPE };
    assert_eq!(refused(SHAPE, &engine), Some(DraftRefused::NothingGuessed));
    assert_eq!(refused(ahead, &recurrent), Some(DraftRefused::TakesNoneBack));
    assert_eq!(refused(ahead, &engine), None);
    let Some(other) = trained("f16").map(|file| load(&file)) else { return };
    assert!(matches!(refused(ahead, &other), Some(DraftRefused::Tokens { .. })));
}
