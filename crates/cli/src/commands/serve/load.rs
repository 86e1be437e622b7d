//! Loading planned models, when the server says, and what it is told of them before.

use super::plan::{Planned, Plans};
use crate::args::{Global, Serve};
use crate::load::load_opened;
use crate::npu;
use crate::terminal::note;
use crate::workers::Workers;
use anyhow::{Result, ensure};
use motley_engine::models::KeepAlive;
use motley_engine::{Engine, Runtime};
use motley_model::ModelSpec;
use motley_server::{LoadError, LoadedModel, Loader, Memory, OfferedModel, OfferedModels};
use std::sync::Arc;

/// What the server is told: names, sizes, and who loads.
pub(super) fn offered(
    runtime: Runtime,
    global: &Global,
    serve: &Serve,
    (plans, workers): (Plans, Option<Workers>),
) -> OfferedModels {
    let Plans { models: planned, room_bytes } = plans;
    let memories = memories(room_bytes, &planned);
    let offered = |planned: &Planned| OfferedModel {
        name: planned.name.clone(),
        spec: Arc::clone(&planned.spec),
        longest: planned.batch.longest(planned.batch.sharing(true)),
        needs: memories.iter().map(|memory| planned.needs(&memory.name)).collect(),
    };
    OfferedModels {
        models: planned.iter().map(offered).collect(),
        keep_alive: serve.idle.map_or(KeepAlive::Always, KeepAlive::For),
        loader: Arc::new(FromPlans {
            runtime,
            global: global.clone(),
            npu: serve.npu.clone(),
            workers,
            planned,
        }),
        memories,
    }
}

/// RAM, then every device that a model has a part of.
fn memories(room_bytes: u64, planned: &[Planned]) -> Vec<Memory> {
    let mut memories = vec![Memory { name: RAM.into(), bytes: room_bytes }];
    for held in planned.iter().flat_map(|planned| planned.on_devices()) {
        match memories.iter_mut().find(|memory| memory.name == held.device) {
            Some(memory) => memory.bytes = memory.bytes.max(held.room_bytes),
            None => {
                memories.push(Memory { name: held.device.clone(), bytes: held.room_bytes });
            }
        }
    }
    memories
}

/// The machine's own memory, among those of devices.
const RAM: &str = "RAM";

impl Planned {
    fn on_devices(&self) -> &[motley_plan::Holding] {
        let holdings = &self.decision.placement.holdings;
        &holdings[..holdings.len().saturating_sub(1)]
    }

    /// Bytes of the memory of that name.
    fn needs(&self, memory: &str) -> u64 {
        let of_ram = self.decision.placement.holdings.last().filter(|_| memory == RAM);
        let held = of_ram.or(self.on_devices().iter().find(|held| held.device == memory));
        held.map_or(0, motley_plan::Holding::bytes)
    }
}

/// Plans, carried out.
struct FromPlans {
    runtime: Runtime,
    global: Global,
    npu: npu::NpuArgs,
    workers: Option<Workers>,
    planned: Vec<Planned>,
}

impl Loader for FromPlans {
    fn load(&self, model: usize) -> Result<LoadedModel, LoadError> {
        let planned = &self.planned[model];
        let engine = self.engine(planned).map_err(Failed)?;
        Ok(LoadedModel {
            engine: Arc::new(engine),
            batch: planned.batch,
            prefix_cache: planned.prefix_cache.clone(),
        })
    }
}

impl FromPlans {
    fn engine(&self, planned: &Planned) -> Result<Engine> {
        let (spec, files) = ModelSpec::open(&planned.path)?;
        let opened = spec.with_experts_used(files, planned.decision.experts_used)?;
        ensure!(
            opened.0 == *planned.spec,
            "{}: is another model than when the server was started; start it again",
            planned.path.display()
        );
        let (most_used, decision) = (planned.most_used.clone(), &planned.decision);
        let mut engine =
            load_opened(self.runtime, &self.global, opened, most_used, decision, false)?;
        if !self.global.json {
            npu::announce(&self.npu, &planned.npu_share);
        }
        if let Some(workers) = &self.workers {
            workers.attach(&mut engine);
            if !self.global.json {
                note(&workers.chosen());
            }
        }
        let chunk_tokens = decision.session.chunk_tokens;
        npu::attach(&mut engine, &self.npu, chunk_tokens, Some(planned.npu_share))?;
        Ok(engine)
    }
}

/// Why a model was not loaded, with all its reasons.
#[derive(Debug)]
pub(super) struct Failed(pub(super) anyhow::Error);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Failed {}
