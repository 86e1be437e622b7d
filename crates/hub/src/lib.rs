//! Models by name. Turns `owner/repo:QUANT` and URLs into files on this machine, in the cache that
//! other tools of the hub use too; reads headers over the network before any weights. Chooses
//! nothing: which quantisation is fetched is the caller's.
//!
//! ```text
//! name ─▶ offer (listing) ─▶ headers (ranges) ─▶ … the caller plans … ─▶ fetch (parts, sha256)
//!    └──▶ find: what is here already, without the network
//! ```
//!
//! Modules in reading order:
//! * `limits`: what a stranger's server may say and send.
//! * [`name`]: what a user may type; `settings`: variables of the environment.
//! * `address`: URLs and redirects; `error`: why a request failed; `http`: one client, and whom it
//!   shows a token.
//! * `retry`: how often and when something is tried again; `parallel`: several at a time.
//! * [`listing`]: what the hub says a repository holds; `variants`: files grouped into models.
//! * `offer`: what can be fetched for a name; `headers`: the beginnings of its files.
//! * `cache`: where files lie, `system`: what it asks of the disk; `lock`: one download of a file at a time.
//! * `progress`: who is told; `download`: one file, resumed and checked; `pull`: all of a model.
//! * `kept`: a model that is here; `scan`: folders of the cache; `find`: what is here, found and
//!   listed; `remove`: taken away.
#![forbid(unsafe_code)]

mod address;
mod cache;
mod download;
mod error;
mod find;
mod headers;
mod http;
mod kept;
mod limits;
pub mod listing;
mod lock;
pub mod name;
mod offer;
mod parallel;
mod progress;
mod pull;
mod remove;
mod retry;
mod scan;
mod settings;
mod system;
mod variants;

pub use cache::free_bytes;
pub use download::PullError;
pub use error::FetchError;
pub use find::{find, list};
pub use headers::HeaderError;
pub use http::Client;
pub use kept::{Kept, KeptError};
pub use name::{HubName, ModelName, NameError, RepoId, UrlName, Wanted};
pub use offer::{Offer, OfferError, RemoteFile, Source};
pub use progress::{Progress, Silent};
pub use pull::Pull;
pub use remove::{Removal, removal};
pub use retry::Retry;
pub use settings::{Settings, SettingsError};
pub use variants::{SelectError, Variant};
