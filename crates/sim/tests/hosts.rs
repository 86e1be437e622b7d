//! A head with workers: the whole way from descriptions to tokens per second.

use motley_cost::HostLink;
use motley_machine::Machine;
use motley_sim::hosts::{HostChoices, HostSetup};
use motley_sim::outcome::Outcome;
use motley_sim::setup::{CacheSize, Choices};
use motley_sim::shape::ModelShape;
use motley_sim::synth::{Synth, SynthParams};
use motley_trace::Trace;

const CABLE: HostLink = HostLink { round_trip_us: 170.0, gb_per_s: 1.17 };

struct World {
    machine: Machine,
    model: ModelShape,
    trace: Trace,
    uses: Vec<u64>,
}

impl World {
    /// 8 layers whose experts are above what the machine's memory holds.
    fn new(machine: &str, model: &str) -> Self {
        let machine = motley_machine::find(machine).unwrap();
        let model = ModelShape::find(model, 4.5).unwrap();
        let params = SynthParams {
            model: model.name.clone(),
            layers: model.layers,
            experts: model.experts,
            k: model.k,
            prompt_tokens: 0,
            decode_tokens: 48,
            zipf_skew: 0.3,
            repeat: 0.1,
            recall: 0.2,
            layer_correlation: 0.9,
            weight_tilt: 0.0,
        };
        let trace = Trace::collect(&mut Synth::new(params, 3).unwrap()).unwrap();
        let grid = trace.header.grid();
        let mut uses = vec![0; grid.len()];
        for visit in trace.visits.iter().filter(|visit| visit.pass < 24) {
            visit.experts.iter().for_each(|&expert| uses[grid.index(visit.key(expert))] += 1);
        }
        Self { machine, model, trace, uses }
    }

    fn setup(&self, workers: u16, link: HostLink, replicas: bool) -> HostSetup {
        let head = Choices {
            machine: &self.machine,
            model: &self.model,
            strategy: None,
            policy: None,
            prefetch: None,
            cache: CacheSize::Fitting,
            prediction_accuracy: 0.8,
            faults: None,
            seed: 1,
        };
        let worker = &self.machine;
        let uses = &self.uses;
        HostSetup::new(&HostChoices { head, worker, workers, link, uses, replicas, streams: 1 })
            .unwrap()
    }

    fn run(&self, workers: u16, link: HostLink, replicas: bool) -> Outcome {
        self.setup(workers, link, replicas).run(&self.trace).unwrap()
    }
}

fn speed(outcome: &Outcome) -> f64 {
    outcome.decode.tokens_per_s()
}

#[test]
fn workers_beat_the_disk_and_nobody_loses_a_row() {
    for machine in ["two-core-24gb", "laptop-8gb-gpu"] {
        let world = World::new(machine, "8x256x8:7168x2048");
        let setup = world.setup(2, CABLE, false);
        let (alone, with) = (setup.alone(&world.trace).unwrap(), setup.run(&world.trace).unwrap());
        assert!(speed(&with) > 1.5 * speed(&alone), "{} {}", speed(&with), speed(&alone));
        let routed: usize = world.trace.visits.iter().map(|visit| visit.experts.len()).sum();
        let away: u64 = with.hosts.iter().map(|host| host.rows).sum();
        assert_eq!(with.counts.lookups + away, routed as u64);
        assert!(with.hosts.iter().all(|host| host.rows > 0 && host.waited < with.wall));
        assert_eq!(with, setup.run(&world.trace).unwrap(), "the same again");
    }
}

#[test]
fn a_slow_cable_costs_and_its_share_is_counted() {
    let world = World::new("two-core-24gb", "8x256x8:7168x2048");
    let slow = HostLink { gb_per_s: 0.117, ..CABLE };
    let [fast, slow] = [CABLE, slow].map(|link| world.run(2, link, false));
    assert!(speed(&slow) < speed(&fast));
    let wire = |outcome: &Outcome| outcome.hosts[0].wire.as_us() / outcome.hosts[0].rows as f64;
    assert!(wire(&slow) > 2.0 * wire(&fast));
}

#[test]
fn more_workers_have_room_for_copies_which_share_rows() {
    let world = World::new("two-core-24gb", "8x64x8:4096x1536");
    let (plain, copied) = (world.setup(4, CABLE, false), world.setup(4, CABLE, true));
    let count = |setup: &HostSetup| setup.placed.iter().map(|set| set.count()).sum::<u32>();
    assert!(count(&copied) > count(&plain));
    assert!(copied.placed.iter().all(|set| set.count() <= copied.worker_slots));
    let [plain, copied] = [plain, copied].map(|setup| setup.run(&world.trace).unwrap());
    assert!(speed(&copied) > speed(&plain), "{} {}", speed(&copied), speed(&plain));
}

#[test]
fn a_split_by_layers_takes_its_hosts_in_turn() {
    let world = World::new("two-core-24gb", "8x256x8:7168x2048");
    let split = |workers| world.setup(workers, CABLE, false).split(&world.trace);
    let (one, two, three) = (split(1), split(2), split(3));
    assert!(two.pipelined_from(0) > two.tokens_per_s_from(0));
    // Three hosts hold all layers, two do not; one more then adds nothing but a hop.
    let speeds = [&one, &two].map(|split| split.tokens_per_s_from(0));
    assert!(speeds[1] > 1.05 * speeds[0], "{speeds:?}");
    let more = three.tokens_per_s_from(0) / two.tokens_per_s_from(0);
    assert!(more > 0.97 && more < 1.0, "{more}");
    let with = speed(&world.run(2, CABLE, false));
    assert!(with > two.tokens_per_s_from(0), "{with}");
}
