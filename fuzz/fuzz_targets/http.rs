//! Any bytes as the body of a request, on every route that takes a prompt, against a model of bytes: it is refused with
//! a status of the client's fault, or becomes work within the limits that are named.
#![no_main]

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use motley_engine::batching::Ask;
use motley_engine::models::KeepAlive;
use motley_engine::{
    BatchOptions, EnergyWatch, Engine, EngineOptions, Runtime, Seam, ThreadSet, ThreadSets,
};
use motley_server::trial::{Route, Trial};
use motley_server::{
    LoadError, LoadedModel, Loader, OfferedModels, ServeLimits, ServeOptions, Telemetry,
};
use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::synth::{self, Arch, Preset, Request, Shape};

/// Stop strings, bytes of each, alternatives of a token: as `server::request::params` has them.
const STOPS_MAX: usize = 16;
const STOP_BYTES_MAX: usize = 256;
const ALTERNATIVES_MAX: usize = 20;
/// Bytes of text let through for each token of a sequence, as `server::request::size` has them, with
/// room for the template's own words.
const TOKEN_BYTES_MAX: usize = 64 + 8;

fuzz_target!(|bytes: &[u8]| {
    let trial = trial();
    for route in Route::ALL {
        match trial.asks(route, bytes) {
            Ok(asks) => {
                // Ollama's routes are asked without a prompt whether the model is there.
                let least = usize::from(!matches!(route, Route::OllamaChat | Route::OllamaGenerate));
                let choices = least..=ServeLimits::default().choices as usize;
                assert!(choices.contains(&asks.len()), "{} choices", asks.len());
                asks.iter().for_each(|ask| check(ask, trial.longest() as usize));
            }
            Err(refusal) => {
                assert!((400..500).contains(&refusal.status), "{refusal:?}");
                assert!(!refusal.body.error.message.is_empty());
            }
        }
    }
});

fn check(ask: &Ask, longest: usize) {
    // One that is longer than a sequence is refused at the engine's door, after this.
    let most = longest * TOKEN_BYTES_MAX;
    assert!(ask.prompt.len() <= most, "a prompt of {} tokens", ask.prompt.len());
    assert!((1..=longest).contains(&ask.max_tokens), "{} tokens", ask.max_tokens);
    assert!(ask.stop.len() <= STOPS_MAX);
    assert!(ask.stop.iter().all(|stop| stop.len() <= STOP_BYTES_MAX));
    assert!(ask.candidates.is_none_or(|most| most <= ALTERNATIVES_MAX));
    let sampling = &ask.sampling;
    assert!((0.0..=2.0).contains(&sampling.temperature));
    for share in [sampling.top_p, sampling.min_p] {
        assert!((0.0..=1.0).contains(&share));
    }
    for penalty in [sampling.frequency_penalty, sampling.presence_penalty] {
        assert!((-2.0..=2.0).contains(&penalty));
    }
    assert!((0.1..=10.0).contains(&sampling.repeat_penalty));
    assert!(i32::try_from(sampling.top_k).is_ok());
}

/// The server's side, made once.
fn trial() -> &'static Trial {
    static TRIAL: OnceLock<Trial> = OnceLock::new();
    TRIAL.get_or_init(|| {
        let batch = BatchOptions { context_tokens: 512, ..BatchOptions::default() };
        let options = ServeOptions {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            strict_model: false,
            keys: Vec::new(),
            cors_origin: None,
            log_text: false,
            telemetry: Telemetry::default(),
            energy: Arc::new(EnergyWatch::default().count()),
            limits: ServeLimits::default(),
        };
        let engine = Arc::new(engine());
        let offered = OfferedModels {
            models: Vec::new(),
            memories: Vec::new(),
            keep_alive: KeepAlive::Always,
            loader: Arc::new(Nobody),
        };
        let loaded = LoadedModel { engine, batch, prefix_cache: None };
        Trial::start(offered, loaded, options).expect("a context")
    })
}

/// The model is there already.
struct Nobody;

impl Loader for Nobody {
    fn load(&self, _: usize) -> Result<LoadedModel, LoadError> {
        Err("nothing is loaded".into())
    }
}

/// One layer, four experts, a vocabulary of bytes.
fn engine() -> Engine {
    let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    request.shape = Shape {
        layers: 1,
        hidden: 64,
        ff: 32,
        experts: 4,
        topk: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 32,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bytes.gguf");
    synth::generate(&request, &Tokenizer::of_bytes(), &path, &mut |_| {}).expect("a model");
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Engine::load(runtime, &path, &options, &mut |_| true).expect("the model loads")
}
