//! Which models are taken from a program that has loaded them itself.

mod support;

use motley_plan::cores::MachineCores;
use motley_plan::decide::facts::described_memory;
use motley_plan::{Asked, Facts, Loading, MachineMemory, ModelNeeds, decide_hosted};
use support::{QWEN3, spec};

const GIB: u64 = 1 << 30;

/// A model of 16 GB on a machine with 24.
struct World {
    model: ModelNeeds,
    memory: MachineMemory,
}

impl World {
    fn new() -> Self {
        let machine = motley_machine::find("two-core-24gb").unwrap();
        let memory = described_memory(&machine).unwrap();
        Self { model: ModelNeeds::of(&spec(QWEN3)), memory }
    }

    /// Whether experts are taken from a host that `lends` devices, or does not.
    fn taken(&self, gib: Option<u64>, loading: Option<Loading>, lends: bool) -> bool {
        let machine = motley_machine::find("two-core-24gb").unwrap();
        let facts = Facts {
            model: &self.model,
            machine: &machine,
            measured: None,
            profile: None,
            memory: Some(self.memory),
            gpus: &[],
            cores: &MachineCores::described(&machine),
            tuned: None,
            layouts: &[],
        };
        let memory_bytes = gib.map(|gib| gib * GIB);
        let asked = Asked { memory_bytes, loading, ..Asked::default() };
        decide_hosted(&facts, &asked, lends).unwrap().takes
    }
}

#[test]
fn a_host_keeps_what_fits_unless_somebody_wants_otherwise() {
    let mut world = World::new();
    assert!(!world.taken(None, None, false));
    assert!(!world.taken(Some(20), None, false));
    assert!(world.taken(Some(8), None, false));
    assert!(world.taken(None, Some(Loading::OnDemand), false));
    assert!(world.taken(None, None, true));
    assert!(!world.taken(None, Some(Loading::Mapped), true));
    // Another model of the process has most of the memory.
    world.memory.others_bytes = 12 * GIB;
    assert!(world.taken(Some(20), None, false));
    world.model.experts = 0;
    assert!(!world.taken(None, Some(Loading::OnDemand), false));
}
