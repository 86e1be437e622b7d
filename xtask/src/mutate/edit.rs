//! Sets a key of a header, and says so in words short enough for a line.

use motley_model::gguf::{MetaValue, Metadata};

/// Sets a key, and says so.
pub(super) fn set(metadata: &mut Metadata, key: &str, value: MetaValue) -> String {
    let said = format!("{key} = {}", shown(&value));
    metadata.insert(key, value);
    said
}

fn shown(value: &MetaValue) -> String {
    match value {
        MetaValue::Array(array) => format!("{} elements", array.len()),
        MetaValue::String(text) => {
            text.to_string_lossy().chars().take(40).flat_map(char::escape_debug).collect()
        }
        scalar => format!("{scalar:?}"),
    }
}
