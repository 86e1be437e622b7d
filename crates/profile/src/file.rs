//! The format of profiles: JSON-lines, a header and one line per layer. Hostile input is
//! refused with its line, never followed.
//!
//! ```text
//! {"motley_profile":1,"model":"Qwen3-30B-A3B","layers":48,"experts":128,"k":8,"origin":{…},…}
//! {"l":0,"p":[12,0,7,…],"d":[3,1,0,…]}
//! ```
//!
//! Rank and imbalance are not stored: they follow from the counts.

use std::io::{self, BufRead, Write};

use motley_trace::line_file::{FileHeader, LineFileError, LineReader, write_record};
use motley_trace::record::{MAX_EXPERTS, MAX_EXPERTS_PER_TOKEN, MAX_LAYERS, MAX_MODEL_NAME_BYTES};
use thiserror::Error;

use crate::chosen::Arrangement;
use crate::profile::{FORMAT_VERSION, LayerCounts, Profile, ProfileHeader};
use crate::reuse::BUCKETS;

/// Longest line, in bytes: 4096 experts in two phases at 20 digits fit four times.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Largest count; sums over experts and phases then stay far from overflow.
pub const MAX_COUNT: u64 = 1 << 48;
/// Most texts and most comparisons a header may name.
pub const MAX_NAMES: usize = 64;

/// Why a profile could not be read.
pub type ProfileError = LineFileError<ProfileProblem>;

/// What is wrong with a line, without where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileProblem {
    /// A number or length outside its limits.
    #[error("field `{field}` is {found}, the limit is {limit}")]
    Range {
        field: &'static str,
        found: u64,
        /// The largest allowed (or the only one).
        limit: u64,
    },
    /// A time or factor of `passes` that is not above zero.
    #[error("field `passes` has a number that is not above zero")]
    Cost,
    /// Shares outside 0 to 1, or sizes that do not rise.
    #[error("field `{field}` has a share that is not between 0 and 1, or out of order")]
    Share { field: &'static str },
}

impl Profile {
    /// Reads and checks a whole profile.
    pub fn read(reader: impl BufRead) -> Result<Self, ProfileError> {
        let mut lines = LineReader::new(reader, "profile", MAX_LINE_BYTES);
        let header: ProfileHeader = lines.header()?;
        check_header(&header).map_err(|problem| lines.invalid(problem))?;
        let mut layers = Vec::with_capacity(usize::from(header.layers));
        for layer in 0..header.layers {
            let counts: LayerCounts = lines.record()?;
            check_layer(&counts, layer, header.experts)
                .map_err(|problem| lines.invalid(problem))?;
            layers.push(counts);
        }
        Ok(Self { header, layers })
    }

    /// Writes the profile; what this writes, [`Profile::read`] accepts if the profile is valid.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        write_record(&mut writer, &self.header)?;
        self.layers.iter().try_for_each(|layer| write_record(&mut writer, layer))?;
        writer.flush()
    }
}

impl FileHeader for ProfileHeader {
    const VERSION: u32 = FORMAT_VERSION;
    const OTHER_VERSION: &'static str = "calibrate the model again";

    fn version(&self) -> u32 {
        self.version
    }
}

fn check_header(header: &ProfileHeader) -> Result<(), ProfileProblem> {
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
            return Err(ProfileProblem::Cost);
        }
    }
    if let Some(chosen) = &header.chosen {
        let Arrangement { machine, ram, devices, .. } = &chosen.arrangement;
        for name in [machine, &chosen.policy, &chosen.prefetch] {
            within("name", name.len() as u64, 0, MAX_MODEL_NAME_BYTES as u64)?;
        }
        let gains = chosen.gain.is_finite() && chosen.gain >= 0.0;
        shares("chosen", [*ram, *devices].into_iter().chain((!gains).then_some(f64::NAN)))?;
        counts("tokens", &[chosen.tokens])?;
    }
    within("held", header.held.len() as u64, 0, MAX_NAMES as u64)?;
    let rising = header.held.is_sorted_by(|a, b| a.share < b.share);
    let held = header.held.iter().flat_map(|held| [held.share, held.hit_rate]);
    shares("held", held.chain((!rising).then_some(f64::NAN)))?;
    shares("overlaps", header.overlaps.iter().flat_map(|overlap| [overlap.mean, overlap.median]))
}

fn shares(field: &'static str, mut found: impl Iterator<Item = f64>) -> Result<(), ProfileProblem> {
    let inside = found.all(|share| (0.0..=1.0).contains(&share));
    if inside { Ok(()) } else { Err(ProfileProblem::Share { field }) }
}

fn check_layer(layer: &LayerCounts, expected: u16, experts: u16) -> Result<(), ProfileProblem> {
    let expected = u64::from(expected);
    within("l", u64::from(layer.layer), expected, expected)?;
    for (field, found) in [("p", &layer.prefill), ("d", &layer.decode)] {
        within(field, found.len() as u64, u64::from(experts), u64::from(experts))?;
        counts(field, found)?;
    }
    Ok(())
}

fn within(field: &'static str, found: u64, least: u64, limit: u64) -> Result<(), ProfileProblem> {
    if (least..=limit).contains(&found) {
        Ok(())
    } else {
        Err(ProfileProblem::Range { field, found, limit })
    }
}

fn counts(field: &'static str, counts: &[u64]) -> Result<(), ProfileProblem> {
    counts.iter().try_for_each(|count| within(field, *count, 0, MAX_COUNT))
}
