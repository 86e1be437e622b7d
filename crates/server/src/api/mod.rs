//! One file per route.
//!
//! * `chat`, `completions`: text; both through `generate`.
//! * `models`, `health`, `dashboard`: what is served, whether it works, what it does.
//! * `openapi`: the document of all of them. `refused`: every other path and method.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod dashboard;
mod generate;
pub(crate) mod health;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod refused;
