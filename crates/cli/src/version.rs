//! What `motley --version` says: the version, the llama.cpp in it and what was built in. `-V` says
//! the first line alone.

use motley_engine::versions;
use std::sync::LazyLock;

/// Features of the build that change what it can do, with their names.
const FEATURES: [(&str, bool); 8] = [
    ("cuda", cfg!(feature = "cuda")),
    ("dynamic-backends", cfg!(feature = "dynamic-backends")),
    ("metal", cfg!(feature = "metal")),
    ("npu", cfg!(feature = "npu")),
    ("nvml", cfg!(feature = "nvml")),
    ("otel", cfg!(feature = "otel")),
    ("rocm", cfg!(feature = "rocm")),
    ("vulkan", cfg!(feature = "vulkan")),
];

/// Several lines, without the program's name, which clap puts first.
pub(crate) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        let (llama, ggml) = (versions::llama(), versions::ggml());
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        format!(
            "{version}\nllama.cpp {llama}, ggml {ggml} ({})\nfeatures: {}\nfor {system} on {processor}",
            versions::CRATE,
            features(),
        )
    });
    &TEXT
}

/// Names of those that are on.
fn features() -> String {
    let on: Vec<&str> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    if on.is_empty() { "none".to_owned() } else { on.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_of_the_manifest_is_listed() {
        let manifest = include_str!("../Cargo.toml");
        let section = manifest.split_once("[features]\n").unwrap().1;
        let section = section.split_once("\n\n").unwrap().0;
        let lines = section.lines().filter(|line| !line.starts_with('#'));
        let named = lines.filter_map(|line| line.split_once(" =")).map(|line| line.0);
        // What is on without being asked for is no feature of its own.
        let named: Vec<&str> = named.filter(|name| *name != "default").collect();
        for name in &named {
            assert!(FEATURES.iter().any(|(known, _)| known == name), "{name}");
        }
        assert_eq!(named.len(), FEATURES.len());
    }

    #[test]
    fn llama_cpp_is_named_with_the_crate_it_comes_in() {
        let text = long();
        assert!(text.starts_with(env!("CARGO_PKG_VERSION")), "{text}");
        assert!(text.contains("llama-cpp-sys-2 0.1."), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
