//! `motley-server`: an OpenAI-compatible server on one engine. A door: it checks what
//! comes in, hands it to the batching thread and writes what comes back. It holds no
//! model code and no scheduling.
//!
//! Modules, in reading order:
//! * [`options`]: what a server is started with, and its limits.
//! * [`serve`]: accepting, limiting, draining.
//! * `app`: the routes and who may use them; `auth`: the key; `body`: bounded JSON.
//! * [`error`]: the API's error bodies.
//! * [`wire`]: the API's types.
//! * `api`: one file per route.
//! * `asking`: from a request to what the engine is asked: `params`, `prompt`, `schema`.
//! * `telling`: from the engine's events to answers and streams.
//! * `tools`: calls of functions in what a model says.
//! * `metrics`: Prometheus; `room`: the live view of experts; `page`: the page at `/`.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it reads the clock and owns threads")]

mod api;
mod app;
mod asking;
mod auth;
mod body;
pub mod error;
mod metrics;
pub mod options;
mod page;
mod room;
pub mod serve;
mod telling;
mod tools;
pub mod wire;

pub use api::openapi_json;
pub use options::{ServeLimits, ServeOptions};
pub use serve::{ServeError, Server};
