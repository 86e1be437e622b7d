//! One file per route.
//!
//! * `chat`, `completions`, `messages`, `responses`, `ollama`: text; all through `generate`.
//! * `embeddings`: vectors and scores of texts.
//! * `infill`: gaps in texts; `tokens`: text to tokens and back; both as llama.cpp has them.
//! * `models`, `ollama_models`, `health`, `dashboard`: what is served, whether it works, what it does.
//! * `settings`: what the page begins with.
//! * `openapi`: the document of all of them. `refused`: every other path and method.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod dashboard;
pub(crate) mod embeddings;
mod generate;
pub(crate) mod health;
pub(crate) mod infill;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod ollama;
pub(crate) mod ollama_models;
pub(crate) mod openapi;
pub(crate) mod refused;
pub(crate) mod responses;
pub(crate) mod room;
pub(crate) mod settings;
pub(crate) mod tokens;
