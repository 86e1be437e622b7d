//! `--api-keys FILE`: a key for each team or program, and what each may have. TOML.

use super::one::{checked, warn_if_others_read};
use anyhow::{Context, Result, ensure};
use motley_engine::batching::Priority;
use motley_server::{ApiKey, KeyTerms};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Each is compared with every request's.
const KEYS_MAX: usize = 1024;
/// Largest and smallest part of the time, beside 1.
const WEIGHT_MAX: f64 = 100.0;
const WEIGHT_MIN: f64 = 0.01;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    key: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    /// For people, and for errors about this file.
    name: String,
    key: String,
    weight: Option<f64>,
    streams: Option<u16>,
    priority: Option<Level>,
    deadline: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Level {
    High,
    Normal,
    Low,
}

/// The keys of a file.
pub(super) fn read(path: &Path) -> Result<Vec<ApiKey>> {
    let cannot = || format!("cannot use the keys in {} (--api-keys)", path.display());
    let file = File::open(path).with_context(cannot)?;
    warn_if_others_read(path, &file);
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(cannot)?;
    of_text(&text).with_context(cannot)
}

fn of_text(text: &str) -> Result<Vec<ApiKey>> {
    let Keys { key: keys } = toml::from_str(text)?;
    ensure!(!keys.is_empty(), "there is none: add a [[key]] with `name` and `key`");
    ensure!(keys.len() <= KEYS_MAX, "{} are too many; {KEYS_MAX} are read", keys.len());
    let (mut names, mut secrets) = (BTreeSet::new(), BTreeSet::new());
    for key in &keys {
        ensure!(names.insert(&key.name), "two keys are called `{}`", key.name);
        ensure!(secrets.insert(&key.key), "`{}` has the key of another", key.name);
    }
    keys.iter().map(one).collect()
}

fn one(key: &Key) -> Result<ApiKey> {
    let Key { name, key: secret, weight, streams, priority, deadline } = key;
    let weight = weight.unwrap_or(1.0);
    ensure!(
        (WEIGHT_MIN..=WEIGHT_MAX).contains(&weight),
        "`weight` of `{name}` is {weight}; it must be from {WEIGHT_MIN} to {WEIGHT_MAX}"
    );
    ensure!(*streams != Some(0), "`streams` of `{name}` is 0: it could ask nothing");
    let deadline = deadline.as_deref().map(humantime::parse_duration).transpose();
    let deadline = deadline.with_context(|| format!("`deadline` of `{name}`"))?;
    Ok(ApiKey {
        key: checked(secret, &format!("the key of `{name}`"))?,
        terms: Some(KeyTerms {
            weight: (weight * 100.0).round() as u32,
            streams: streams.unwrap_or(u16::MAX),
            priority: match priority {
                Some(Level::High) => Priority::High,
                Some(Level::Normal) | None => Priority::Normal,
                Some(Level::Low) => Priority::Low,
            },
            deadline,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_not_said_is_as_for_all() {
        let keys = of_text(
            "[[key]]\nname = 'chat'\nkey = 'a'\nweight = 2.5\nstreams = 4\npriority = 'high'\n\
             deadline = '2m'\n[[key]]\nname = 'ci'\nkey = 'b'\n",
        )
        .unwrap();
        let [chat, ci] = &keys[..] else { panic!("{keys:?}") };
        let terms = chat.terms.unwrap();
        assert_eq!((terms.weight, terms.streams, terms.priority), (250, 4, Priority::High));
        assert_eq!(terms.deadline, Some(Duration::from_secs(120)));
        let terms = ci.terms.unwrap();
        assert_eq!(
            (terms.weight, terms.streams, terms.priority),
            (100, u16::MAX, Priority::Normal)
        );
        assert_eq!((terms.deadline, ci.key.as_str()), (None, "b"));
    }

    #[test]
    fn what_could_not_be_meant_is_refused() {
        for (text, expected) in [
            ("key = []", "there is none"),
            ("", "missing field `key`"),
            ("[[key]]\nname = 'a'\nkey = ''", "the key of `a` is empty"),
            ("[[key]]\nname = 'a'\nkey = 'x'\nweight = 0", "`weight` of `a` is 0"),
            ("[[key]]\nname = 'a'\nkey = 'x'\nstreams = 0", "could ask nothing"),
            ("[[key]]\nname = 'a'\nkey = 'x'\ndeadline = 'soon'", "`deadline` of `a`"),
            ("[[key]]\nname = 'a'\nkey = 'x'\nwieght = 1", "unknown field `wieght`"),
            (
                "[[key]]\nname = 'a'\nkey = 'x'\n[[key]]\nname = 'a'\nkey = 'y'",
                "two keys are called `a`",
            ),
            (
                "[[key]]\nname = 'a'\nkey = 'x'\n[[key]]\nname = 'b'\nkey = 'x'",
                "`b` has the key of another",
            ),
        ] {
            let error = format!("{:#}", of_text(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
