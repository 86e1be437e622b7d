//! The format of profiles: JSON-lines, a header and one line per layer. Hostile input is
//! refused with its line, never followed.
//!
//! ```text
//! {"motley_profile":1,"model":"Qwen3-30B-A3B","layers":48,"experts":128,"k":8,"origin":{…},…}
//! {"l":0,"p":[12,0,7,…],"d":[3,1,0,…]}
//! ```
//!
//! Rank and imbalance are not stored: they follow from the counts.

use std::io::{self, BufRead, Read, Write};

use motley_trace::record::{MAX_EXPERTS, MAX_EXPERTS_PER_TOKEN, MAX_LAYERS, MAX_MODEL_NAME_BYTES};
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::profile::{FORMAT_VERSION, LayerCounts, Profile, ProfileHeader};
use crate::reuse::BUCKETS;

/// Longest line, in bytes: 4096 experts in two phases at 20 digits fit four times.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Largest count; sums over experts and phases then stay far from overflow.
pub const MAX_COUNT: u64 = 1 << 48;
/// Most texts and most comparisons a header may name.
pub const MAX_NAMES: usize = 64;

/// Why a profile could not be read. `line` counts from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The reader failed.
    #[error("line {line}: cannot be read")]
    Io {
        /// Line being read.
        line: u64,
        /// The failure.
        source: io::Error,
    },
    /// A line beyond [`MAX_LINE_BYTES`].
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong {
        /// The line.
        line: u64,
    },
    /// The file ends before its last layer, or before anything.
    #[error("the file ends at line {line}; a profile has a header and one line per layer")]
    Truncated {
        /// The first line missing.
        line: u64,
    },
    /// A line that is not the JSON expected.
    #[error("line {line}: not the record expected: {source}")]
    Json {
        /// The line.
        line: u64,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// A line that parses but is not valid.
    #[error("line {line}: {problem}")]
    Invalid {
        /// The line.
        line: u64,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a line, without where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// A version this crate does not know.
    #[error("format version {found} is not {FORMAT_VERSION}; calibrate the model anew")]
    Version {
        /// The version named.
        found: u32,
    },
    /// A number or length outside its limits.
    #[error("field `{field}` is {found}, the limit is {limit}")]
    Range {
        /// The field, as in the file.
        field: &'static str,
        /// The number found.
        found: u64,
        /// The largest allowed (or the only one).
        limit: u64,
    },
    /// A time or factor of `passes` that is none.
    #[error("field `passes` has a number that is not above zero")]
    Cost,
    /// Shares outside 0 to 1, or sizes that do not rise.
    #[error("field `{field}` has a share that is not between 0 and 1, or out of order")]
    Share {
        /// The field, as in the file.
        field: &'static str,
    },
}

impl Profile {
    /// Reads and checks a whole profile.
    pub fn read(reader: impl BufRead) -> Result<Self, ProfileError> {
        let mut lines = Lines { reader, text: Vec::new(), line: 0 };
        let header: ProfileHeader = lines.next_json()?;
        lines.check(check_header(&header))?;
        let mut layers = Vec::with_capacity(usize::from(header.layers));
        for layer in 0..header.layers {
            let counts: LayerCounts = lines.next_json()?;
            lines.check(check_layer(&counts, layer, header.experts))?;
            layers.push(counts);
        }
        Ok(Self { header, layers })
    }

    /// Writes the profile; what this writes, [`Profile::read`] accepts if the profile is valid.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut writer, &self.header)?;
        writer.write_all(b"\n")?;
        for layer in &self.layers {
            serde_json::to_writer(&mut writer, layer)?;
            writer.write_all(b"\n")?;
        }
        writer.flush()
    }
}

fn check_header(header: &ProfileHeader) -> Result<(), Problem> {
    if header.version != FORMAT_VERSION {
        return Err(Problem::Version { found: header.version });
    }
    within("layers", u64::from(header.layers), 1, u64::from(MAX_LAYERS))?;
    within("experts", u64::from(header.experts), 1, u64::from(MAX_EXPERTS))?;
    let most = MAX_EXPERTS_PER_TOKEN.min(header.experts);
    within("k", u64::from(header.k), 1, u64::from(most))?;
    let origin = &header.origin;
    within("sources", origin.sources.len() as u64, 0, MAX_NAMES as u64)?;
    within("overlaps", header.overlaps.len() as u64, 0, MAX_NAMES as u64)?;
    let names = origin.sources.iter().chain([&header.model, &origin.written_by, &origin.date]);
    for name in names.chain(header.overlaps.iter().map(|overlap| &overlap.against)) {
        within("name", name.len() as u64, 0, MAX_MODEL_NAME_BYTES as u64)?;
    }
    let buckets = header.reuse.choices.len() as u64;
    within("choices", buckets, if buckets == 0 { 0 } else { BUCKETS as u64 }, BUCKETS as u64)?;
    counts("choices", &header.reuse.choices)?;
    counts("tokens", &[origin.prefill_tokens, origin.decode_tokens, header.reuse.first])?;
    if let Some(costs) = &header.passes {
        within("name", costs.cpu.len() as u64, 0, MAX_MODEL_NAME_BYTES as u64)?;
        if !costs.is_sound() {
            return Err(Problem::Cost);
        }
    }
    within("held", header.held.len() as u64, 0, MAX_NAMES as u64)?;
    let rising = header.held.is_sorted_by(|a, b| a.share < b.share);
    let held = header.held.iter().flat_map(|held| [held.share, held.hit_rate]);
    shares("held", held.chain((!rising).then_some(f64::NAN)))?;
    shares("overlaps", header.overlaps.iter().flat_map(|overlap| [overlap.mean, overlap.median]))
}

fn shares(field: &'static str, mut found: impl Iterator<Item = f64>) -> Result<(), Problem> {
    let inside = found.all(|share| (0.0..=1.0).contains(&share));
    if inside { Ok(()) } else { Err(Problem::Share { field }) }
}

fn check_layer(layer: &LayerCounts, expected: u16, experts: u16) -> Result<(), Problem> {
    let expected = u64::from(expected);
    within("l", u64::from(layer.layer), expected, expected)?;
    for (field, found) in [("p", &layer.prefill), ("d", &layer.decode)] {
        within(field, found.len() as u64, u64::from(experts), u64::from(experts))?;
        counts(field, found)?;
    }
    Ok(())
}

fn within(field: &'static str, found: u64, least: u64, limit: u64) -> Result<(), Problem> {
    if (least..=limit).contains(&found) {
        Ok(())
    } else {
        Err(Problem::Range { field, found, limit })
    }
}

fn counts(field: &'static str, counts: &[u64]) -> Result<(), Problem> {
    counts.iter().try_for_each(|count| within(field, *count, 0, MAX_COUNT))
}

struct Lines<R> {
    reader: R,
    text: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    fn next_json<T: DeserializeOwned>(&mut self) -> Result<T, ProfileError> {
        self.line += 1;
        let line = self.line;
        self.text.clear();
        let mut bounded = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        let read = bounded
            .read_until(b'\n', &mut self.text)
            .map_err(|source| ProfileError::Io { line, source })?;
        match read {
            0 => Err(ProfileError::Truncated { line }),
            read if read > MAX_LINE_BYTES => Err(ProfileError::LineTooLong { line }),
            _ => serde_json::from_slice(&self.text)
                .map_err(|source| ProfileError::Json { line, source }),
        }
    }

    fn check(&self, found: Result<(), Problem>) -> Result<(), ProfileError> {
        found.map_err(|problem| ProfileError::Invalid { line: self.line, problem })
    }
}
