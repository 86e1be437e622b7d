//! `motley worker`: experts for other machines.

use crate::args::{Global, Worker};
use crate::known::Known;
use crate::sandbox::{Needs, Sandbox};
use crate::terminal::{note, print_json};
use crate::workers;
use anyhow::{Context, Result, ensure};
use motley_engine::worker::{ExpertWorker, WorkerOptions};
use motley_engine::{
    EngineOptions, Runtime, Seam, ThreadSet, ThreadSets, identity, machine_memory,
};
use motley_model::{ModelSpec, format_bytes};
use motley_plan::ModelNeeds;
use motley_plan::worker::worker_slots;
use motley_wire::{Connection, Event, Listener, Offer};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;

/// Runs the command.
pub(crate) fn run(global: &Global, asked: &Worker) -> Result<()> {
    let runtime = Runtime::start(Seam::Registered)?;
    let known = Known::to_run(&runtime, global, &asked.model, asked.trust)?;
    let spec = &known.spec;
    ensure!(spec.is_moe(), "{}: has no experts to compute", asked.model.display());
    let (layers, experts) = shard(spec, asked)?;
    let here = layers.len() as u32 * (u32::from(experts.end) - u32::from(experts.start));
    let needs = ModelNeeds::of(spec);
    let slots = worker_slots(&needs, here, asked.memory, machine_memory())?;
    let model = identity::identity(spec, &known.files)
        .with_context(|| format!("cannot read {}", asked.model.display()))?;
    let offer = Offer { model, build: workers::build(), layers, experts, slots };
    let options = WorkerOptions::new(slots, threads(asked));
    // Before files are given up: binding makes the keys' folder.
    let folder = workers::folder()?;
    let listener = Listener::bind(asked.listen, &folder)?;
    let kept = Needs {
        model_files: known.files.paths.clone(),
        devices: false,
        written: &[folder],
        library: None,
        outgoing_ports: Vec::new(),
    };
    let sandbox = Sandbox::restrict_files(asked.sandbox.sandbox, kept)?;
    let worker = ExpertWorker::load(runtime, (known.spec, known.files), &options)?;
    sandbox.restrict_calls()?;
    let code = asked.pair.then(|| listener.open_code());
    announce(global, &listener, &offer, (here, slots, needs.slot_bytes), code.as_deref())?;
    answer(&listener, Arc::new(motley_worker::Worker::new(offer, worker)));
    Ok(())
}

fn answer(listener: &Listener, worker: Arc<motley_worker::Worker>) {
    let rows = Arc::clone(&worker);
    let heads = move |mut connection: Connection| {
        if let Err(error) = rows.serve(&mut connection) {
            tracing::info!("{}: {error}", connection.peer);
        }
    };
    listener.run(heads, worker, |event| match event {
        Event::Paired { peer, .. } => note(&format!("paired with {peer}")),
        other => tracing::info!("{other:?}"),
    });
}

/// One line, or JSON: where it listens, what it computes, and the code.
fn announce(
    global: &Global,
    listener: &Listener,
    offer: &Offer,
    (here, slots, slot_bytes): (u32, u32, u64),
    code: Option<&str>,
) -> Result<()> {
    let address = listener.local_address();
    if global.json {
        let said = json!({
            "address": address.to_string(), "layers": offer.layers, "code": code,
            "experts": [offer.experts.start, offer.experts.end], "slots": slots,
        });
        return print_json(&said.to_string());
    }
    let bytes = |experts: u32| format_bytes(u64::from(experts) * slot_bytes);
    let room = match slots.min(here) {
        all if all == here => format!("all in memory once they were used ({})", bytes(all)),
        some => format!("{some} of them in memory ({}), the others on disk", bytes(some)),
    };
    let (first, last, layers) = (offer.experts.start, offer.experts.end - 1, offer.layers.len());
    note(&format!(
        "worker on {address}: experts {first}–{last} of {layers} layers, {here}: {room}"
    ));
    if let Some(code) = code {
        note(&format!("pairing code: {code} (motley run MODEL --workers HOST:{})", address.port()));
    }
    Ok(())
}

/// Layers and experts as asked for, of those there are.
fn shard(spec: &ModelSpec, asked: &Worker) -> Result<(Vec<u16>, Range<u16>)> {
    let wanted = |layer: u32| asked.layers.as_ref().is_none_or(|layers| layers.contains(&layer));
    let all: Vec<u16> = spec.expert_layers().map(|layer| layer.layer as u16).collect();
    let layers: Vec<u16> = all.iter().copied().filter(|&layer| wanted(layer.into())).collect();
    let (first, last) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
    ensure!(!layers.is_empty(), "--layers: layers with experts are {first}-{last}");
    let experts = asked.experts.clone().unwrap_or(0..spec.experts);
    ensure!(
        experts.end <= spec.experts,
        "--experts {}-{}: this model has experts 0-{}",
        experts.start,
        experts.end - 1,
        spec.experts - 1
    );
    Ok((layers, experts.start as u16..experts.end as u16))
}

/// As many as were asked for, else what an engine takes by itself.
fn threads(asked: &Worker) -> ThreadSets {
    match asked.threads {
        Some(threads) => ThreadSets::both(ThreadSet::anywhere(threads)),
        None => EngineOptions::default().threads,
    }
}
