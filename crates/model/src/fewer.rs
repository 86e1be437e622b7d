//! The same model with fewer experts per token: its header says another number, and everything that
//! is made of the header follows. The files stay as they are.

use std::path::PathBuf;

use crate::error::SpecError;
use crate::files::ModelFiles;
use crate::gguf::{MetaArray, MetaValue, Metadata};
use crate::keys::Keys;
use crate::spec::ModelSpec;

/// How many experts a token uses.
const KEY: &str = "expert_used_count";

/// Why a model cannot use so many experts per token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FewerError {
    /// It has no routed experts.
    #[error("{}: --experts {wanted}: this model has no routed experts; leave it out", path.display())]
    Dense { path: PathBuf, wanted: u32 },
    /// None, or more than it was trained with.
    #[error(
        "{}: --experts {wanted}: a token of this model uses {used} experts; give 1 to {used}",
        path.display()
    )]
    Number {
        path: PathBuf,
        wanted: u32,
        /// The model's own number.
        used: u32,
    },
    /// The header with the new number was refused.
    #[error("{}: --experts {wanted}: cannot be used", path.display())]
    Spec { path: PathBuf, wanted: u32, source: SpecError },
}

impl ModelSpec {
    /// The model and its files with at most `wanted` experts per token: every layer uses that many,
    /// or its own number where that is smaller. `None` leaves it as it is.
    pub fn with_experts_used(
        self,
        mut files: ModelFiles,
        wanted: Option<u32>,
    ) -> Result<(Self, ModelFiles), FewerError> {
        let Some(wanted) = wanted else { return Ok((self, files)) };
        let path = files.paths.first().cloned().unwrap_or_default();
        if !self.is_moe() {
            return Err(FewerError::Dense { path, wanted });
        }
        if !(1..=self.used).contains(&wanted) {
            return Err(FewerError::Number { path, wanted, used: self.used });
        }
        if wanted == self.used {
            return Ok((self, files));
        }
        let failed = |source| FewerError::Spec { path: path.clone(), wanted, source };
        if let Some(first) = files.headers.first_mut() {
            limit(&mut first.metadata, wanted).map_err(failed)?;
        }
        let spec = Self::from_headers(&files.headers).map_err(failed)?;
        let fewer_of = self.fewer_of.or(Some(self.used));
        Ok((Self { fewer_of, ..spec }, files))
    }
}

/// One number for all layers, or one for each.
fn limit(metadata: &mut Metadata, most: u32) -> Result<(), SpecError> {
    let keys = Keys::new(metadata)?;
    let key = keys.full(KEY);
    let value = match keys.get(KEY) {
        Some(MetaValue::Array(array)) => of_layers(array, most),
        _ => most.into(),
    };
    metadata.insert(&key, value);
    Ok(())
}

fn of_layers(array: &MetaArray, most: u32) -> MetaValue {
    let own = (0..array.len()).map(|layer| array.get_u64(layer).unwrap_or(0));
    own.map(|used| used.min(most.into()) as u32).collect::<Vec<u32>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_uses_as_many_or_its_own_number() {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "lfm2moe");
        metadata.insert("lfm2moe.expert_used_count", vec![0_u32, 4, 2]);
        limit(&mut metadata, 3).unwrap();
        let keys = Keys::new(&metadata).unwrap();
        let used = |layer| keys.per_layer(KEY, layer).unwrap();
        assert_eq!([used(0), used(1), used(2)], [Some(0), Some(3), Some(2)]);
        metadata.insert("lfm2moe.expert_used_count", 4_u32);
        limit(&mut metadata, 3).unwrap();
        assert_eq!(Keys::new(&metadata).unwrap().count(KEY).unwrap(), Some(3));
    }
}
