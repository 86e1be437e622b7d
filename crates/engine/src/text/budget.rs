//! What rendering a template may cost: bytes it makes, the size of any one value, and time. Counts
//! and refuses; knows no operation of a template by name.

use crate::clock::now;
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of all texts and lists one rendering makes, kept or not.
const RENDER_BYTES_MAX: u64 = 256 << 20;
/// Bytes of one value with all that is in it: twice over what the largest prompt has.
const VALUE_BYTES_MAX: u64 = 8 << 20;
/// Lists in lists; JSON from a request goes 128 deep.
const DEPTH_MAX: usize = 160;
/// What one value takes beside its text.
const NODE_BYTES: u64 = 64;
/// Longest a rendering may take.
const RENDER_TIME_MAX: Duration = Duration::from_secs(10);

/// What is left of one rendering's budget.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: AtomicU64,
    deadline: Instant,
}

impl Budget {
    /// A whole one, from `begin` on.
    pub(super) fn new(begin: Instant) -> Self {
        Self { bytes: AtomicU64::new(0), deadline: begin + RENDER_TIME_MAX }
    }

    /// Takes what a text or list of `bytes` costs.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        if bytes > VALUE_BYTES_MAX {
            return Err(refused(format!("a value of more than {VALUE_BYTES_MAX} bytes")));
        }
        if self.bytes.fetch_add(bytes, Relaxed) + bytes > RENDER_BYTES_MAX {
            return Err(refused(format!("more than {RENDER_BYTES_MAX} bytes in all")));
        }
        if now() > self.deadline {
            return Err(refused(format!("more than {} s", RENDER_TIME_MAX.as_secs())));
        }
        Ok(())
    }

    /// Takes what making `value` has cost, and refuses one that is too large or too deep.
    pub(super) fn made(&self, value: &Value) -> Result<(), Error> {
        weight(value)?;
        let shallow = match value.kind() {
            ValueKind::String | ValueKind::Bytes => value.len().unwrap_or(0).max(text_len(value)),
            _ => value.len().unwrap_or(0) * NODE_BYTES as usize,
        };
        self.take(shallow as u64)
    }

    /// Takes what `values` cost as text, one after the other, and writes them.
    pub(super) fn text(&self, values: &[&Value]) -> Result<String, Error> {
        let mut text = Bounded::default();
        for value in values {
            let written = match value.as_str() {
                Some(part) => text.write_str(part),
                None => write!(text, "{value}"),
            };
            written.map_err(|_| too_large())?;
        }
        self.take(text.0.len() as u64)?;
        Ok(text.0)
    }
}

/// Bytes of a value with all that is in it, or that it is too large or too deep. What a namespace
/// holds can change later: it is in no other value.
pub(super) fn weight(value: &Value) -> Result<u64, Error> {
    let mut bytes = 0;
    add_weight(value, 0, &mut bytes)?;
    Ok(bytes)
}

/// Whether it is what `namespace()` makes.
pub(super) fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Why a template was ended.
pub(super) fn refused(limit: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("it takes {limit}"))
}

fn too_large() -> Error {
    refused(format!("a value of more than {VALUE_BYTES_MAX} bytes"))
}

fn text_len(value: &Value) -> usize {
    value.as_bytes().map_or(0, <[u8]>::len)
}

fn add_weight(value: &Value, depth: usize, bytes: &mut u64) -> Result<(), Error> {
    *bytes += NODE_BYTES + text_len(value) as u64;
    if *bytes > VALUE_BYTES_MAX {
        return Err(too_large());
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    if depth > DEPTH_MAX {
        return Err(refused(format!("lists more than {DEPTH_MAX} deep")));
    }
    if depth > 0 && is_namespace(value) {
        return Err(refused("a namespace inside another value".into()));
    }
    match value.kind() {
        ValueKind::Map => {
            for (key, value) in object.try_iter_pairs().into_iter().flatten() {
                add_weight(&key, depth + 1, bytes)?;
                add_weight(&value, depth + 1, bytes)?;
            }
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for value in object.try_iter().into_iter().flatten() {
                add_weight(&value, depth + 1, bytes)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// A text that grows to the bound and no further.
#[derive(Default)]
pub(super) struct Bounded(pub(super) String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if (self.0.len() + part.len()) as u64 > VALUE_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

impl std::io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(part).map_err(std::io::Error::other)?;
        self.write_str(text).map_err(|_| std::io::Error::other(too_large()))?;
        Ok(part.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_run_out() {
        let budget = Budget::new(now());
        let whole = VALUE_BYTES_MAX;
        assert!((0..RENDER_BYTES_MAX / whole).all(|_| budget.take(whole).is_ok()));
        assert!(budget.take(1).is_err());
        assert!(Budget::new(now()).take(whole + 1).is_err());
        let past =
            now().checked_sub(2 * RENDER_TIME_MAX).expect("the machine has been up for so long");
        assert!(Budget::new(past).take(1).is_err());
    }

    #[test]
    fn a_value_weighs_what_is_in_it() {
        let text = Value::from("four");
        assert_eq!(weight(&text).unwrap(), NODE_BYTES + 4);
        let list = Value::from(vec![text.clone(), text]);
        assert_eq!(weight(&list).unwrap(), 3 * NODE_BYTES + 8);
        let deep = (0..=DEPTH_MAX).fold(list, |deep, _| Value::from(vec![deep]));
        assert!(weight(&deep).is_err());
    }
}
