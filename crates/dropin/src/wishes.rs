//! What the variables ask for: one for each flag of `motley run` that has a meaning inside a host,
//! under the same names. Those of flags that are the host's business are refused with the reason.

use motley_model::KvType;
use motley_plan::decide::parse::{parse_devices, parse_size};
use motley_plan::{Asked, DevicesAsked, Loading};
use std::path::PathBuf;

/// Flags that are the host's: (variable, what the host calls it).
const OF_THE_HOST: &[(&str, &str)] = &[
    ("MOTLEY_THREADS", "threads are the host's (`-t`)"),
    ("MOTLEY_CONTEXT", "the KV cache is the host's (`-c`)"),
    ("MOTLEY_KV", "the KV cache is the host's (`-ctk`, `-ctv`)"),
    ("MOTLEY_CHUNK", "the chunk of a prompt is the host's (`-ub`)"),
    ("MOTLEY_EXPERTS", "the model's header is read by the host (`--override-kv`)"),
    ("MOTLEY_SKIP_COLD", "experts are not left out inside a host"),
    ("MOTLEY_PLAN", "a plan is for `motley run`"),
    ("MOTLEY_NPU", "NPUs are not used inside a host"),
];

/// The wishes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// As `decide` takes them.
    pub(crate) asked: Asked,
    /// Where figures are written at the end.
    pub(crate) stats: Option<PathBuf>,
    /// Whether to say more than one line for each model.
    pub(crate) explains: bool,
    /// Whether to stay out of it.
    pub(crate) off: bool,
}

/// A variable that cannot be obeyed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value}: {reason}")]
pub(crate) struct WishError {
    variable: &'static str,
    value: String,
    reason: String,
}

impl Wishes {
    /// Reads them through `variable`; empty ones count as absent.
    pub(crate) fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, WishError> {
        let get = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        for &(name, reason) in OF_THE_HOST {
            if let Some(value) = get(name) {
                return Err(WishError { variable: name, value, reason: reason.into() });
            }
        }
        let devices = read(&get, "MOTLEY_DEVICES", parse_devices)?;
        let asked = Asked {
            memory_bytes: read(&get, "MOTLEY_MEMORY", parse_size)?,
            devices: devices.unwrap_or(DevicesAsked::Auto),
            loading: read(&get, "MOTLEY_LOADING", loading)?,
            policy: read(&get, "MOTLEY_POLICY", parsed)?,
            prefetch: read(&get, "MOTLEY_PREFETCH", parsed)?,
            exact: read(&get, "MOTLEY_EXACT", yes)?.unwrap_or(false),
            kv: Some(KvType::F16),
            ..Asked::default()
        };
        Ok(Self {
            asked,
            stats: get("MOTLEY_STATS").map(PathBuf::from),
            explains: read(&get, "MOTLEY_EXPLAIN", yes)?.unwrap_or(false),
            off: read(&get, "MOTLEY_OFF", yes)?.unwrap_or(false),
        })
    }
}

fn read<T>(
    get: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, WishError> {
    let Some(value) = get(variable) else { return Ok(None) };
    match parse(value.trim()) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(reason) => Err(WishError { variable, value, reason }),
    }
}

fn loading(text: &str) -> Result<Loading, String> {
    match text {
        "mapped" => Ok(Loading::Mapped),
        "on-demand" => Ok(Loading::OnDemand),
        _ => Err("write mapped or on-demand".into()),
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn yes(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("write 1 or 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Wishes, WishError> {
        let find = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Wishes::from_variables(find)
    }

    #[test]
    fn variables_are_the_flags_of_run() {
        let wishes = of(&[
            ("MOTLEY_MEMORY", "4G"),
            ("MOTLEY_DEVICES", "cuda0=2G"),
            ("MOTLEY_POLICY", "ram=lfu,gpu=blend"),
            ("MOTLEY_EXACT", "1"),
            ("MOTLEY_STATS", "run.json"),
            ("MOTLEY_LOADING", ""),
        ])
        .unwrap();
        assert_eq!(wishes.asked.memory_bytes, Some(4 << 30));
        assert!(matches!(&wishes.asked.devices, DevicesAsked::Named(named) if named.len() == 1));
        assert!(wishes.asked.exact && wishes.asked.policy.is_some() && !wishes.off);
        assert_eq!((wishes.asked.loading, wishes.stats), (None, Some("run.json".into())));
        let none = of(&[]).unwrap();
        // The host has made its cache when it is asked.
        let host = Asked { kv: Some(KvType::F16), ..Asked::default() };
        assert_eq!((none.asked, none.off), (host, false));
    }

    #[test]
    fn what_cannot_be_obeyed_is_refused_by_name() {
        for (variable, value, part) in [
            ("MOTLEY_MEMORY", "much", "unknown unit"),
            ("MOTLEY_LOADING", "lazy", "write mapped or on-demand"),
            ("MOTLEY_POLICY", "best", "best"),
            ("MOTLEY_THREADS", "4", "the host's (`-t`)"),
            ("MOTLEY_EXACT", "perhaps", "write 1 or 0"),
        ] {
            let error = of(&[(variable, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{variable}={value}: ")), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }
}
