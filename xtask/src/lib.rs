//! Automation of this repository; no part of the product.
//!
//! In reading order:
//! - [`tidy`]: the house rules as a checker.
#![forbid(unsafe_code)]

pub mod tidy;

use std::path::Path;

/// The root of the workspace this program was built from.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}
