//! Rule: the code map in ARCHITECTURE.md names every crate (STYLE 1).

use super::{Finding, Tree};

const MAP: &str = "ARCHITECTURE.md";

/// Crates missing from the map. Without the file there is nothing to check.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.file(MAP) else { return Vec::new() };
    tree.crate_folders()
        .into_iter()
        .filter(|folder| !names(&map.text, folder))
        .map(|folder| Finding::file(MAP, format!("the code map does not list `crates/{folder}`")))
        .collect()
}

/// A crate is named as `crates/x`, `motley-x`, or alone in code quotes.
fn names(map: &str, folder: &str) -> bool {
    let ends =
        |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    [format!("crates/{folder}"), format!("motley-{folder}"), format!("`{folder}")]
        .iter()
        .any(|name| map.match_indices(name).any(|(at, _)| ends(&map[at + name.len()..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(map: &str) -> Vec<Finding> {
        let manifest = ("crates/model/Cargo.toml", "");
        check(&Tree::of_pairs(&[(MAP, map), manifest]))
    }

    #[test]
    fn a_listed_crate_passes() {
        assert!(findings("| `model` | GGUF |").is_empty());
        assert!(findings("see crates/model.").is_empty());
    }

    #[test]
    fn a_missing_crate_is_found() {
        assert_eq!(findings("| `models` | `model-x` | crates/modelling").len(), 1);
        assert_eq!(findings("the model is good").len(), 1);
    }

    #[test]
    fn no_map_no_finding() {
        assert!(check(&Tree::of_pairs(&[("crates/model/Cargo.toml", "")])).is_empty());
    }
}
