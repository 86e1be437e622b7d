//! Whether other machines pay, on described machines and a model too large for one of them.

use motley_cost::HostLink;
use motley_machine::Machine;
use motley_model::gguf::GgmlType;
use motley_plan::cores::MachineCores;
use motley_plan::decide::facts::{described_gpus, described_memory};
use motley_plan::decide::workers::workers_pay;
use motley_plan::hosts::{Advised, Host, Others, RemoteAdvice};
use motley_plan::worker::worker_slots;
use motley_plan::{Asked, Decision, Facts, GpuFact, ModelNeeds, decide};
use support::{Numbers, spec};

mod support;

/// 94 layers of 128 experts at four bits: 133 GB, above what 64 GB hold.
const LARGE: Numbers =
    Numbers { layers: 94, experts: 128, used: 8, hidden: 4096, width: 1536, ty: GgmlType::Q4_0 };
const FAST: HostLink = HostLink { round_trip_us: 170.0, gb_per_s: 1.17 };
const SLOW: HostLink = HostLink { round_trip_us: 170.0, gb_per_s: 0.117 };

fn facts<'a>(
    machine: &'a Machine,
    model: &'a ModelNeeds,
    gpus: &'a [GpuFact],
    cores: &'a MachineCores,
) -> Facts<'a> {
    Facts {
        model,
        machine,
        measured: None,
        profile: None,
        memory: described_memory(machine),
        gpus,
        cores,
        tuned: None,
        layouts: &[],
    }
}

struct World {
    machine: Machine,
    model: ModelNeeds,
    decision: Decision,
}

impl World {
    fn new(machine: &str, numbers: Numbers) -> Self {
        let machine = motley_machine::find(machine).unwrap();
        let model = ModelNeeds::of(&spec(numbers));
        let (gpus, cores) = (described_gpus(&machine), MachineCores::described(&machine));
        let facts = facts(&machine, &model, &gpus, &cores);
        let decision = decide(&facts, &Asked::default()).unwrap();
        Self { machine, model, decision }
    }

    /// With so many workers that have the head's memory and CPU.
    fn advice(&self, workers: usize, link: HostLink, streams: u32) -> RemoteAdvice {
        let memory = described_memory(&self.machine);
        let slots = worker_slots(&self.model, self.model.experts, None, memory).unwrap();
        let workers = vec![Host { slots, speed: 1.0 }; workers];
        let (gpus, cores) = (described_gpus(&self.machine), MachineCores::described(&self.machine));
        let facts = facts(&self.machine, &self.model, &gpus, &cores);
        let others = Others { workers: &workers, link, streams };
        workers_pay(&facts, &Asked::default(), &self.decision, others).unwrap()
    }
}

#[test]
fn workers_that_hold_what_the_head_reads_from_disk_pay() {
    let world = World::new("desktop-24gb-gpu", LARGE);
    let advice = world.advice(2, FAST, 1);
    assert_eq!(advice.advised, Advised::Workers, "{advice:?}");
    assert!(advice.with_workers > 1.3 * advice.alone.max(advice.split), "{advice:?}");
    assert!(world.advice(4, FAST, 1).with_workers > advice.with_workers);
    assert!(world.advice(2, SLOW, 1).with_workers < advice.with_workers);
}

#[test]
fn nobody_helps_over_a_cable_that_takes_a_second() {
    let never = HostLink { round_trip_us: 1e6, gb_per_s: 0.001 };
    let small = Numbers { layers: 24, ..support::QWEN3 };
    let advice = World::new("desktop-24gb-gpu", small).advice(2, never, 1);
    assert_eq!(advice.advised, Advised::Alone, "{advice:?}");
}

#[test]
fn many_streams_are_faster_together_than_one() {
    let world = World::new("desktop-24gb-gpu", LARGE);
    let speeds = [1, 16, 64].map(|streams| world.advice(4, FAST, streams).with_workers);
    assert!(speeds.is_sorted(), "{speeds:?}");
    let alone = world.advice(4, FAST, 16);
    assert!(alone.with_workers > alone.alone, "{alone:?}");
}
