//! `/motley/room`: which models are in memory, and how much of it each takes.

use crate::models::Models;
use axum::Json;
use axum::extract::State;
use motley_engine::models::ModelState;
use motley_model::Sizes;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The memories that models share, and the models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Room {
    /// RAM, then devices.
    memories: Vec<RoomMemory>,
    models: Vec<RoomModel>,
}

/// A memory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoomMemory {
    name: String,
    /// What models may take of it.
    bytes: u64,
    /// What those that are loaded take.
    taken_bytes: u64,
}

/// A model that is served.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoomModel {
    name: String,
    /// `absent`, `loading`, `loaded`, or `leaving`: it makes room when its requests are answered.
    state: &'static str,
    /// Its files.
    file_bytes: u64,
    /// What it takes of each memory while it is loaded, in the order of `memories`.
    needs_bytes: Vec<u64>,
    /// Requests that use it.
    requests: usize,
    /// Requests that wait until it is loaded.
    waiting: usize,
    /// Seconds until it is unloaded if nobody asks for it; absent while it is used, and where it
    /// stays until another needs the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    unloaded_in_s: Option<f64>,
}

/// Which models are in memory.
#[utoipa::path(get, path = "/motley/room", responses((status = 200, body = Room)))]
pub(crate) async fn room(State(models): State<Arc<Models>>) -> Json<Room> {
    let now = models.now();
    let set = &models.loaded().set;
    let memory = |(memory, (bytes, taken_bytes)): (&crate::Memory, (u64, u64))| RoomMemory {
        name: memory.name.clone(),
        bytes,
        taken_bytes,
    };
    let model = |(index, offered): (usize, &crate::OfferedModel)| {
        let (requests, waiting) = set.requests(index);
        RoomModel {
            name: offered.name.clone(),
            state: word(set.state(index)),
            file_bytes: Sizes::of(&offered.spec).total_bytes,
            needs_bytes: set.needs(index).to_vec(),
            requests,
            waiting,
            unloaded_in_s: set.due_at(index).map(|at| at.saturating_sub(now).as_secs_f64()),
        }
    };
    Json(Room {
        memories: models.memories.iter().zip(set.memories()).map(memory).collect(),
        models: models.offered.iter().enumerate().map(model).collect(),
    })
}

fn word(state: ModelState) -> &'static str {
    match state {
        ModelState::Absent => "absent",
        ModelState::Loading => "loading",
        ModelState::Here => "loaded",
        ModelState::Leaving => "leaving",
    }
}
