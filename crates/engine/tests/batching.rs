//! Many answers at once on a real (small) model: equal to sessions in exact mode,
//! prefixes computed once, clients that leave, constraints.

use motley_engine::batching::{Ask, Event, Reason};
use motley_engine::{
    BatchOptions, Batching, Engine, EngineOptions, Generation, Runtime, Sampling, Seam,
    SessionOptions, SubmitError, ThreadSet, ThreadSets, TokenBias,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;

const PROMPTS: [&str; 6] = [
    "1, 2, 3, 4, 5, 6,",
    "The chemical symbol for gold is",
    "Dear Sir or Madam,\n\nI am writing to",
    "The opposite of hot is",
    "Once upon a time, in a village by the sea, there lived",
    "Water boils at",
];

/// SmolLM2 as a mixture of experts.
fn engine() -> Option<Arc<Engine>> {
    let model = motley_testkit::fixtures::upcycled(16, 4)?;
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Some(Arc::new(Engine::load(runtime, &model, &options, &mut |_| true).expect("it loads")))
}

fn start(engine: &Arc<Engine>, exact: bool) -> Batching {
    let options =
        BatchOptions { context_tokens: 4096, sequences: 8, exact, ..BatchOptions::default() };
    Batching::start(Arc::clone(engine), &options, None, None).unwrap()
}

fn start_own_caches(engine: &Arc<Engine>) -> Batching {
    let options = BatchOptions {
        context_tokens: 4096,
        sequences: 8,
        own_caches: true,
        ..BatchOptions::default()
    };
    Batching::start(Arc::clone(engine), &options, None, None).unwrap()
}

fn ask(engine: &Engine, prompt: &str, max_tokens: usize) -> Ask {
    Ask {
        prompt: engine.tokenize(prompt).unwrap().into(),
        max_tokens,
        ignore_end: true,
        ..Ask::default()
    }
}

/// Text, reason and reused tokens of an answer.
fn read(mut events: Receiver<Event>) -> (String, Reason, usize) {
    let mut text = String::new();
    loop {
        match events.blocking_recv().expect("an answer ends with its end") {
            Event::Piece(piece) => text.push_str(&piece.text),
            Event::Done(done) => return (text, done.reason, done.reused_tokens),
            Event::Failed(reason) => panic!("{reason}"),
            Event::Late | Event::Vector(_) => panic!("no answer"),
        }
    }
}

/// What a session by itself says.
fn alone(engine: &Engine, prompt: &str, max_tokens: usize) -> String {
    let options = SessionOptions { context_tokens: 512, ..SessionOptions::default() };
    let mut session = engine.session(&options).unwrap();
    let generation = Generation { sampling: Sampling::default(), max_tokens, ignore_end: true };
    let mut text = motley_engine::TextStream::default();
    let mut all = String::new();
    session
        .generate(&engine.tokenize(prompt).unwrap(), &generation, &mut |token| {
            all.push_str(&text.push(&engine.token_bytes(token)));
            ControlFlow::Continue(())
        })
        .unwrap();
    all + &text.finish()
}

fn answers(batching: &Batching, tokens: usize) -> Vec<String> {
    let engine = batching.engine();
    let asked: Vec<_> = PROMPTS
        .iter()
        .map(|prompt| batching.submit(ask(engine, prompt, tokens)).unwrap())
        .collect();
    asked.into_iter().map(|events| read(events).0).collect()
}

#[test]
fn exact_streams_say_what_sessions_say() {
    let Some(engine) = engine() else { return };
    let together = answers(&start(&engine, true), 20);
    for (prompt, text) in PROMPTS.iter().zip(&together) {
        assert_eq!(text, &alone(&engine, prompt, 20), "{prompt:?}");
    }
}

#[test]
fn streams_computed_together_differ_from_sessions_by_rounding_only() {
    let Some(engine) = engine() else { return };
    for batching in [start(&engine, false), start_own_caches(&engine)] {
        let together = answers(&batching, 12);
        let pairs = PROMPTS.iter().zip(&together);
        let equal = pairs.filter(|(p, t)| alone(&engine, p, 12) == **t).count();
        println!("{equal} of {} texts equal", PROMPTS.len());
        assert!(equal * 2 >= PROMPTS.len(), "{together:?}");
    }
}

#[test]
fn a_bias_forces_a_token_or_rules_it_out() {
    let Some(engine) = engine() else { return };
    let batching = start(&engine, true);
    let said = |biases: &[TokenBias]| {
        let asked = Ask { biases: biases.into(), ..ask(&engine, PROMPTS[0], 4) };
        read(batching.submit(asked).unwrap()).0
    };
    let freely = said(&[]);
    let token = |text: &str| engine.tokenize_plain(text).unwrap()[0];
    let (forced, first) = (token("x"), token(&freely));
    let always = said(&[TokenBias { token: forced, bias: 100.0 }]);
    assert_eq!(always.as_bytes(), engine.token_bytes(forced).repeat(4));
    let never = said(&[TokenBias { token: first, bias: -100.0 }]);
    assert_ne!(token(&never), first, "{never:?}: {freely:?}");
    assert_eq!(said(&[]), freely);
}

#[test]
fn a_prefix_is_reused_and_the_answer_stays() {
    let Some(engine) = engine() else { return };
    for batching in [start(&engine, false), start_own_caches(&engine)] {
        reuses_a_prefix(&engine, &batching);
    }
}

/// What others said is not to be learned from how much of a prompt was computed before.
#[test]
fn without_shared_prefixes_every_prompt_is_computed() {
    let Some(engine) = engine() else { return };
    let prompt = PROMPTS[0].repeat(8);
    for own_caches in [false, true] {
        let options = BatchOptions {
            context_tokens: 4096,
            sequences: 8,
            own_caches,
            share_prefixes: false,
            ..BatchOptions::default()
        };
        let batching = Batching::start(Arc::clone(&engine), &options, None, None).unwrap();
        let together = [0; 3].map(|_| batching.submit(ask(&engine, &prompt, 8)).unwrap());
        assert!(together.into_iter().map(read).all(|(_, _, reused)| reused == 0));
        assert_eq!(read(batching.submit(ask(&engine, &prompt, 8)).unwrap()).2, 0);
        assert_eq!(batching.figures().planner.reused_tokens, 0);
    }
}

fn reuses_a_prefix(engine: &Engine, batching: &Batching) {
    let prompt =
        "You are a helpful assistant who answers briefly and to the point, in one short sentence. "
            .repeat(3)
            + "The chemical symbol for gold is";
    let (first, _, none) = read(batching.submit(ask(engine, &prompt, 8)).unwrap());
    let (second, _, reused) = read(batching.submit(ask(engine, &prompt, 8)).unwrap());
    assert_eq!(none, 0);
    assert_eq!(reused, engine.tokenize(&prompt).unwrap().len() - 1);
    assert_eq!(first, second);
}

#[test]
fn a_client_that_leaves_frees_its_cells() {
    let Some(engine) = engine() else { return };
    let batching = start(&engine, false);
    let stays = batching.submit(ask(&engine, PROMPTS[0], 32)).unwrap();
    let mut leaves = batching.submit(ask(&engine, PROMPTS[4], 300)).unwrap();
    assert!(matches!(leaves.blocking_recv(), Some(Event::Piece(_))));
    drop(leaves);
    assert!(read(stays).0.starts_with(" 7, 8"));
    until(|| batching.figures().planner.active == 0);
    let figures = batching.figures();
    assert_eq!((figures.cancelled, figures.answered), (1, 1));
    assert!(figures.planner.cells_used < 60, "only the finished one is kept: {figures:?}");
}

#[test]
fn a_stop_string_ends_the_answer_and_is_not_in_it() {
    let Some(engine) = engine() else { return };
    let batching = start(&engine, false);
    let asked = Ask { stop: [" 10".to_owned()].into(), ..ask(&engine, PROMPTS[0], 64) };
    let (text, reason, _) = read(batching.submit(asked).unwrap());
    assert_eq!((text.as_str(), reason), (" 7, 8, 9,", Reason::StopString(0)));
}

#[test]
fn a_constraint_holds_whatever_the_model_wants() {
    let Some(engine) = engine() else { return };
    let batching = start(&engine, false);
    let schema = serde_json::json!({ "enum": ["red", "green"] });
    let constraint = Some(engine.constraint(&schema).unwrap());
    let asked = Ask { constraint, ignore_end: false, ..ask(&engine, PROMPTS[1], 64) };
    let (text, reason, _) = read(batching.submit(asked).unwrap());
    assert!(["\"red\"", "\"green\""].contains(&text.trim()), "{text}");
    assert_eq!(reason, Reason::Stop);
}

#[test]
fn too_long_and_too_many_are_refused() {
    let Some(engine) = engine() else { return };
    let options =
        BatchOptions { context_tokens: 256, sequences: 1, waiting: 2, ..BatchOptions::default() };
    let batching = Batching::start(Arc::clone(&engine), &options, None, None).unwrap();
    let long = batching.submit(Ask { prompt: [1; 256].into(), ..ask(&engine, "", 1) });
    assert!(matches!(long, Err(SubmitError::Refused(_))));
    let empty = batching.submit(Ask { prompt: Arc::default(), ..ask(&engine, "", 1) });
    assert!(matches!(empty, Err(SubmitError::Refused(_))));
    let many: Vec<_> = (0..8).map(|_| batching.submit(ask(&engine, "Hello", 200))).collect();
    assert!(many.iter().any(Result::is_err));
    assert!(many.iter().filter(|one| one.is_ok()).count() >= 2);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may read the clock")]
fn the_times_of_an_answer_are_all_of_its_time() {
    let Some(engine) = engine() else { return };
    let batching = start(&engine, false);
    let begun = Instant::now();
    let mut asked: Vec<_> =
        PROMPTS.map(|prompt| batching.submit(ask(&engine, prompt, 12)).unwrap()).into();
    for events in &mut asked {
        let ended = std::iter::from_fn(|| events.blocking_recv()).find_map(|event| match event {
            Event::Done(done) => Some(done),
            _ => None,
        });
        let times = ended.expect("an end").times;
        let all = times.waited + times.prompt + times.answer;
        assert!(times.prompt > Duration::ZERO && times.answer > Duration::ZERO, "{times:?}");
        assert!(all <= begun.elapsed(), "{times:?}");
        // Nothing is read from the disk here.
        assert_eq!(times.prompt_disk + times.answer_disk, Duration::ZERO);
    }
}

#[allow(clippy::disallowed_methods, reason = "a test may wait")]
fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
