//! `motley-server`: an OpenAI-compatible server on one engine. A door: it checks requests,
//! hands them to the batching thread and writes the responses. It holds no model code and
//! no scheduling.
//!
//! Modules, in reading order:
//! * [`options`]: what a server is started with, and its limits.
//! * [`serve`]: accepting, limiting, draining.
//! * `app`: what handlers share. `routes`: the routes and the checks before them; `auth`: the
//!   key; `body`: bounded JSON.
//! * [`error`]: the API's error bodies.
//! * [`wire`]: the API's types.
//! * `api`: one file per route.
//! * `request`: from a request to work for the engine: `params`, `prompt`, `schema`.
//! * `response`: from the engine's events to responses and streams.
//! * `tools`: function calls in a model's output.
//! * `metrics`: Prometheus; `expert_counts`: which experts were chosen; `page`: the page at `/`;
//!   `clock`: the time of day.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it reads the clock and owns threads")]

mod api;
mod app;
mod auth;
mod body;
mod clock;
pub mod error;
mod expert_counts;
mod metrics;
pub mod options;
mod page;
mod request;
mod response;
mod routes;
pub mod serve;
mod tools;
pub mod wire;

pub use api::openapi::openapi_json;
pub use options::{ServeLimits, ServeOptions};
pub use serve::{ServeError, Server};
