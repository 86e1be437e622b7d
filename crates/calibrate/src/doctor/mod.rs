//! What this machine has, what Motley uses of it, what is missing and how to get it.
//!
//! * [`facts`]: everything read from the machine, as plain data.
//! * [`build`]: what this build of ggml can use.
//! * [`direct`]: whether files can be read past the page cache.
//! * [`advice`]: facts to one line each, with a way out where something is missing.

pub mod advice;
pub mod build;
pub mod direct;
pub mod facts;

pub use advice::{Line, State, advise};
pub use build::Build;
pub use direct::DirectIo;
pub use facts::Facts;

use std::path::Path;

use motley_ggml::Runtime;

/// Facts and advice for the machine this runs on, and the disk below `path`.
pub fn examine(runtime: &Runtime, path: &Path) -> (Facts, Vec<Line>) {
    let build = Build::of_this(runtime);
    let facts = Facts::read(Path::new("/"), path, build, direct::probe(path));
    let lines = advise(&facts);
    (facts, lines)
}
