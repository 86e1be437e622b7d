//! tmp
use super::{Document, ReproduceError};
/// tmp
pub fn document() -> Result<Document, ReproduceError> {
    super::gpu_ndp::document()
}
