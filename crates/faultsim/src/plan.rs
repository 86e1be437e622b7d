//! What a seed chooses: the shape of the server, who asks what, and what goes wrong. Runs nothing.

use crate::hash::mix;
use crate::machine_plan::MachinePlan;
use motley_engine::BatchOptions;
use motley_engine::batching::{Client, ClientId, Priority};
use motley_model::KvType;
use motley_sched::admission::AdmissionLimits;
use motley_store::Alignment;
use std::time::Duration;

/// Longest a request may be without its end, in virtual time.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// Tokens of the vocabulary; token 0 ends an answer.
pub const VOCAB: usize = 48;

/// All of one run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub options: BatchOptions,
    /// Whether the model's cache can be cut at every position.
    pub keeps_every_position: bool,
    pub admission: AdmissionLimits,
    pub clients: Vec<ClientPlan>,
    pub experts: ExpertsPlan,
    pub machine: MachinePlan,
    /// Bytes for beginnings of prompts on disk, where there is one for them.
    pub prefix_bytes: Option<u64>,
    pub faults: FaultRates,
}

/// One client with one request.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// Some are the same one's.
    pub client: Client,
    pub arrives: Duration,
    /// Bytes of its body, and whether it says so beforehand.
    pub body_bytes: u64,
    pub says_length: bool,
    pub prompt: Vec<i32>,
    pub max_tokens: usize,
    /// The answer ends where so many of its tokens would begin to repeat as a stop string.
    pub stop_at: Option<usize>,
    pub ignore_end: bool,
    pub candidates: Option<usize>,
    /// Time between two looks at its events.
    pub pace: Duration,
    /// Leaves so long after it came.
    pub leaves: Option<Duration>,
}

/// The model's experts and the memory for them.
#[derive(Debug, Clone)]
pub struct ExpertsPlan {
    pub layers: u16,
    pub experts: u16,
    /// Experts of one token in one layer.
    pub used: u16,
    /// Bytes of an expert's two matrices.
    pub matrix_bytes: [u64; 2],
    pub direct: Option<Alignment>,
    pub slots_most: u32,
    pub slots_least: u32,
    pub reads_in_flight: usize,
    /// Layers out of 1000 after which guesses are read.
    pub guesses_per_mille: u16,
}

/// How often what goes wrong, out of 1000 unless it says otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    pub eio: u16,
    pub short: u16,
    pub late: u16,
    pub decode: u16,
    pub cut: u16,
    /// Out of 100,000 steps.
    pub panic: u16,
    /// Memory shrinks and grows about so often.
    pub pressure_every: Option<Duration>,
    /// A model file changes then.
    pub changed_at: Option<Duration>,
}

impl Plan {
    /// The run of `seed`.
    pub fn of(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(mix(seed));
        let options = options(&mut rng);
        let clients = clients(&mut rng, &options);
        let experts = experts(&mut rng);
        let ExpertsPlan { layers, used, slots_most, guesses_per_mille, .. } = experts;
        let shape = (layers, experts.experts, used);
        let machine = MachinePlan::draw(&mut rng, shape, slots_most, guesses_per_mille);
        let keeps_every_position = rng.u8(..8) > 2;
        let admission = AdmissionLimits {
            waiting: options.waiting,
            body_bytes: rng.u64(100 << 10..3 << 20),
            preparers: rng.usize(1..4),
        };
        Self {
            seed,
            admission,
            options,
            keeps_every_position,
            clients,
            experts,
            machine,
            prefix_bytes: rng.bool().then(|| rng.u64(..6000)),
            faults: FaultRates::draw(&mut rng),
        }
    }
}

fn options(rng: &mut fastrand::Rng) -> BatchOptions {
    BatchOptions {
        context_tokens: rng.u32(48..400),
        longest_tokens: u32::MAX,
        kv: KvType::F16,
        sequences: rng.u16(1..7),
        step_tokens: rng.u32(8..96),
        prefill_beside_decode: rng.u32(1..48),
        step_time: rng.bool().then(|| Duration::from_micros(rng.u64(0..50_000))),
        waiting: rng.usize(1..12),
        own_caches: rng.bool(),
        share_prefixes: rng.u8(..4) != 0,
        saved_states: rng.u16(..6),
        exact: rng.u8(..5) == 0,
        embedding: None,
    }
}

fn clients(rng: &mut fastrand::Rng, options: &BatchOptions) -> Vec<ClientPlan> {
    let bases: Vec<Vec<i32>> =
        (0..3).map(|_| (0..rng.usize(4..70)).map(|_| token(rng)).collect()).collect();
    let spread_us = rng.u64(1_000..400_000);
    let impatient = rng.bool();
    let client = |rng: &mut fastrand::Rng| {
        let mut prompt = bases[rng.usize(..bases.len())].clone();
        prompt.truncate(rng.usize(1..=prompt.len()).max(rng.usize(1..=prompt.len())));
        prompt.extend((0..rng.usize(..12)).map(|_| token(rng)).collect::<Vec<_>>());
        // Now and then one that is too long, which must be refused.
        if rng.u8(..20) > 0 {
            prompt.truncate((options.context_tokens / 2) as usize);
        }
        ClientPlan {
            client: who(rng),
            arrives: Duration::from_micros(rng.u64(..spread_us)),
            body_bytes: if rng.u8(..4) == 0 { rng.u64(..1 << 20) } else { rng.u64(..4 << 10) },
            says_length: rng.bool(),
            prompt,
            max_tokens: rng.usize(1..40),
            stop_at: (rng.u8(..4) == 0).then(|| rng.usize(..12)),
            ignore_end: rng.bool(),
            candidates: (rng.u8(..6) == 0).then(|| rng.usize(..6)),
            pace: Duration::from_micros(match rng.u8(..6) {
                0 => 20_000_000,
                1 => rng.u64(10_000..800_000),
                _ => rng.u64(100..5_000),
            }),
            leaves: (impatient && rng.u8(..3) == 0)
                .then(|| Duration::from_micros(rng.u64(..300_000))),
        }
    };
    (0..rng.usize(1..13)).map(|_| client(rng)).collect()
}

/// One of four, two of which are given more or less than others.
fn who(rng: &mut fastrand::Rng) -> Client {
    let id = rng.u8(..4);
    let (weight, streams) = match id {
        2 => (400, 2),
        3 => (25, 1),
        _ => (100, u16::MAX),
    };
    let priority = match rng.u8(..6) {
        0 => Priority::High,
        1 => Priority::Low,
        _ => Priority::Normal,
    };
    Client { id: ClientId(id.into()), weight, streams, priority }
}

fn token(rng: &mut fastrand::Rng) -> i32 {
    rng.i32(1..VOCAB as i32)
}

fn experts(rng: &mut fastrand::Rng) -> ExpertsPlan {
    let experts = rng.u16(2..9);
    let layers = rng.u16(1..4);
    let slots_least = rng.u32(1..5);
    // Some are cut into several chunks; they are slow to make, so few.
    let many_chunks = rng.u8(..100) == 0;
    let bytes = |rng: &mut fastrand::Rng| match many_chunks {
        true => rng.u64(1 << 20..5 << 19),
        false => rng.u64(1..200) * 16 + rng.u64(..2) * 4,
    };
    ExpertsPlan {
        layers,
        experts,
        used: rng.u16(1..3),
        matrix_bytes: [bytes(rng), bytes(rng)],
        direct: rng
            .bool()
            .then(|| Alignment { memory: 1 << rng.u32(2..10), offset: 1 << rng.u32(6..13) }),
        slots_most: slots_least + rng.u32(..u32::from(experts) * u32::from(layers) + 1),
        slots_least,
        reads_in_flight: rng.usize(1..6),
        guesses_per_mille: if rng.bool() { rng.u16(..600) } else { 0 },
    }
}

impl FaultRates {
    /// A quarter of the runs have none; the others two or three kinds.
    fn draw(rng: &mut fastrand::Rng) -> Self {
        let mut rates = Self::default();
        if rng.u8(..4) == 0 {
            return rates;
        }
        for _ in 0..rng.u8(1..4) {
            match rng.u8(..8) {
                0 => rates.eio = rng.u16(1..300),
                1 => rates.short = rng.u16(1..300),
                2 => rates.late = rng.u16(1..60),
                3 => rates.decode = rng.u16(1..60),
                4 => rates.cut = rng.u16(1..200),
                5 => rates.panic = rng.u16(1..2_000),
                6 => rates.pressure_every = Some(Duration::from_micros(rng.u64(300..50_000))),
                _ => rates.changed_at = Some(Duration::from_micros(rng.u64(..500_000))),
            }
        }
        rates
    }
}
