//! `/motley/dashboard`: what the page shows of the running engine.

use crate::error::ApiError;
use crate::models::Models;
use crate::workers::DashboardWorker;
use axum::Json;
use axum::extract::{Query, State};
use motley_engine::blocks::resident::{ExpertPlace, ExpertPlaces};
use motley_engine::process_memory;
use motley_model::Sizes;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Which model is meant.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct OfModel {
    /// Its name (default: the first; of figures, the first that is loaded).
    pub(super) model: Option<String>,
}

/// The state of the engine now. Counts grow from the start of the server; a viewer takes
/// differences.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Dashboard {
    model: String,
    experts: u32,
    experts_per_token: u32,
    /// Layers that have experts.
    layers: Vec<DashboardLayer>,
    /// Where expert bytes are: `memory` all of them, `disk` read when needed.
    experts_in: &'static str,
    /// Experts in memory now, of all layers.
    experts_in_memory: usize,
    /// Experts on devices now; absent when none shares them.
    #[serde(skip_serializing_if = "Option::is_none")]
    experts_on_devices: Option<usize>,
    experts_in_all: usize,
    /// Places of experts that this server has, and how many are in each now; none twice.
    memories: Vec<DashboardMemory>,
    /// Experts routed to, and those of them that were in memory; when read from disk.
    lookups: Option<u64>,
    hits: Option<u64>,
    read_bytes: Option<u64>,
    answer_tokens: u64,
    prompt_tokens: u64,
    reused_tokens: u64,
    requests_active: usize,
    requests_waiting: usize,
    cancelled: u64,
    kv_cells: u32,
    kv_cells_used: u32,
    prefixes_kept: usize,
    resident_bytes: Option<u64>,
    budget_bytes: Option<u64>,
    model_bytes: u64,
    steps: u64,
    busy_us: u64,
    /// Other machines that compute experts.
    workers: Vec<DashboardWorker>,
}

/// One layer: how often each expert was chosen, and where it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DashboardLayer {
    layer: usize,
    counts: Vec<u64>,
    /// A character per expert: `0` on disk, `1` in memory, `2` on a device, `3` in memory and on
    /// a device. Absent when all are in memory alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<String>,
}

/// A place where experts are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DashboardMemory {
    /// Its character in `places`.
    place: char,
    /// `disk`, `memory`, `device` or `memory_and_device`.
    kind: &'static str,
    experts: usize,
}

/// What the page shows of the running engine.
#[utoipa::path(
    get,
    path = "/motley/dashboard",
    params(OfModel),
    responses((status = 200, body = Dashboard), (status = 404, body = crate::error::ErrorBody)),
)]
pub(crate) async fn dashboard(
    State(models): State<Arc<Models>>,
    Query(of): Query<OfModel>,
) -> Result<Json<Dashboard>, ApiError> {
    let app = models.app(of.model.as_deref())?;
    let figures = app.batching.figures();
    let engine = app.batching.engine();
    let spec = engine.spec();
    let has_experts = |layer: usize| spec.layers.get(layer).is_some_and(Option::is_some);
    let rows = app.expert_counts.rows().into_iter().filter(|(layer, _)| has_experts(*layer));
    let places = app.batching.places();
    let layer = |(layer, counts)| DashboardLayer {
        layer,
        counts,
        places: places.map(|places| characters(places, layer, spec.experts as usize)),
    };
    let layers: Vec<DashboardLayer> = rows.map(layer).collect();
    let in_all = spec.expert_layers().count() * spec.experts as usize;
    let planner = figures.planner;
    Ok(Json(Dashboard {
        model: app.name.clone(),
        experts: spec.experts,
        experts_per_token: spec.used,
        memories: memories(places, &layers, in_all),
        layers,
        experts_in: if places.is_some_and(ExpertPlaces::from_disk) { "disk" } else { "memory" },
        experts_in_memory: places.and_then(ExpertPlaces::in_memory).unwrap_or(in_all),
        experts_on_devices: places
            .filter(|places| places.on_devices())
            .map(ExpertPlaces::in_devices),
        experts_in_all: in_all,
        lookups: figures.stream.map(|stream| stream.counts.lookups),
        hits: figures.stream.map(|stream| stream.counts.hits + stream.counts.guessed_hits),
        read_bytes: figures.stream.map(|stream| stream.disk.bytes),
        answer_tokens: figures.answer_tokens,
        prompt_tokens: figures.prompt_tokens,
        reused_tokens: planner.reused_tokens,
        requests_active: planner.active,
        requests_waiting: planner.waiting,
        cancelled: figures.cancelled,
        kv_cells: planner.cells.max(app.batching.options().context_tokens),
        kv_cells_used: planner.cells_used,
        prefixes_kept: planner.kept,
        resident_bytes: resident_bytes(),
        budget_bytes: engine.memory_bytes(),
        model_bytes: Sizes::of(spec).total_bytes,
        steps: figures.steps,
        busy_us: figures.busy.as_micros() as u64,
        workers: engine.workers().into_iter().map(DashboardWorker::from).collect(),
    }))
}

fn characters(places: &ExpertPlaces, layer: usize, experts: usize) -> String {
    places.layer(layer, experts).map(character).collect()
}

fn character(place: ExpertPlace) -> char {
    match place {
        ExpertPlace::Disk => '0',
        ExpertPlace::Memory => '1',
        ExpertPlace::Device => '2',
        ExpertPlace::MemoryAndDevice => '3',
    }
}

/// The places there can be, counted in `layers`; memory alone has all `in_all`.
fn memories(
    places: Option<&ExpertPlaces>,
    layers: &[DashboardLayer],
    in_all: usize,
) -> Vec<DashboardMemory> {
    let from_disk = places.is_some_and(ExpertPlaces::from_disk);
    let on_devices = places.is_some_and(ExpertPlaces::on_devices);
    let kinds = [
        ("disk", ExpertPlace::Disk, from_disk),
        ("memory", ExpertPlace::Memory, true),
        ("device", ExpertPlace::Device, from_disk && on_devices),
        ("memory_and_device", ExpertPlace::MemoryAndDevice, on_devices),
    ];
    let count = |place: char| match places {
        None => in_all,
        Some(_) => {
            layers.iter().flat_map(|layer| &layer.places).map(|all| occurs(all, place)).sum()
        }
    };
    let memory = |(kind, place, there)| {
        let place = character(place);
        bool::then(there, || DashboardMemory { place, kind, experts: count(place) })
    };
    kinds.into_iter().filter_map(memory).collect()
}

fn occurs(all: &str, place: char) -> usize {
    all.chars().filter(|&one| one == place).count()
}

/// Memory of this process, where the system reports it.
fn resident_bytes() -> Option<u64> {
    process_memory::of_self(Path::new("/")).map(|memory| memory.resident_bytes())
}
