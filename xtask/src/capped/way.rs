//! One way of running a model: the bare engine, or Motley with settings.

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A way by name: `bare`, `motley`, or `motley:policy=lru,prefetch=none,serial,buffered,mapped`;
/// `program=PATH` is another build of Motley.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// As given.
    pub name: String,
    pub(super) bare: bool,
    /// Another program than the one compared.
    pub(super) program: Option<PathBuf>,
    pub(super) settings: Map<String, Value>,
}

impl FromStr for Way {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let (engine, settings) = name.split_once(':').unwrap_or((name, ""));
        let bare = match engine {
            "bare" if settings.is_empty() => true,
            "motley" => false,
            _ => bail!("`{name}` is neither `bare` nor `motley[:setting,…]`"),
        };
        let (mut parsed, mut program) = (Map::new(), None);
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some((key @ ("policy" | "prefetch"), value)) => {
                    parsed.insert(key.into(), json!(value));
                }
                Some(("program", path)) => program = Some(PathBuf::from(path)),
                None if setting == "mapped" => {
                    parsed.insert("on_demand".into(), json!(false));
                    parsed.insert("repack".into(), json!(true));
                    parsed.insert("memory".into(), Value::Null);
                }
                None if setting == "blocks" => {
                    // Experts with four rows and more one by one, as by default without `--exact`.
                    let kernels =
                        json!({"layouts": [], "blocks_from_rows": 4.0, "block_rows": 128});
                    parsed.insert("kernels".into(), kernels);
                }
                None if matches!(setting, "serial" | "buffered") => {
                    parsed.insert(setting.into(), json!(true));
                }
                _ => bail!(
                    "unknown setting `{setting}`; there are policy=…, prefetch=…, program=…, \
                     mapped, blocks, serial, buffered"
                ),
            }
        }
        Ok(Self { name: name.into(), bare, program, settings: parsed })
    }
}

/// What all jobs share: weights in the file's own order, one repetition.
pub(super) fn base_job(model: &Path, bare: bool, threads: u32) -> Value {
    json!({
        "model": model, "bare": bare, "on_demand": !bare, "repack": false, "threads": threads,
        "context": 256, "chunk": 512, "repeat": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_with_their_settings() {
        let way: Way = "motley:policy=lru,serial".parse().unwrap();
        assert!(!way.bare);
        assert_eq!(way.settings["policy"], "lru");
        assert_eq!(way.settings["serial"], true);
        let before: Way = "motley:mapped,program=/bin/true".parse().unwrap();
        assert_eq!(before.program.as_deref(), Some(Path::new("/bin/true")));
        assert_eq!(before.settings["on_demand"], false);
        assert!("bare".parse::<Way>().unwrap().bare);
        for wrong in ["", "llama", "bare:serial", "motley:policy", "motley:colour=red"] {
            assert!(wrong.parse::<Way>().is_err(), "{wrong}");
        }
    }
}
