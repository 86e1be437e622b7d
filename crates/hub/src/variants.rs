//! Files grouped into models: the parts of a split one together, each with its quantisation, told
//! by its name. Knows names and sizes only; the same for a repository and for a folder here.

use crate::limits::{MAX_MODEL_BYTES, MAX_PARTS};
use crate::name::{HubName, RepoId, Wanted};
use motley_model::format_bytes;
use std::collections::BTreeMap;

/// Why none was found.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectError {
    /// No model at all.
    #[error("{of} holds no GGUF model")]
    Empty { of: String },
    /// Others, but not this.
    #[error("{of} has no {wanted:?}; it has {there}")]
    NotThere { of: String, wanted: String, there: String },
    /// Several files of one quantisation.
    #[error("{of} has {wanted:?} more than once; name one of them: {there}")]
    Several { of: String, wanted: String, there: String },
    /// A split model that is not whole.
    #[error("{of} has {have} of the {count} parts of {name}")]
    Parts { of: String, name: String, have: usize, count: u64 },
    /// A size no machine holds.
    #[error("{name} would have more than {MAX_MODEL_BYTES} bytes")]
    Size { name: String },
}

/// One model of several files' names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// `Q4_K_M`; else the file's name without its end.
    pub label: String,
    /// Path before the part's number, or before `.gguf`.
    pub stem: String,
    /// Indices of its files, parts in order.
    pub files: Vec<usize>,
    /// Parts it should have.
    pub count: u64,
    pub bytes: u64,
}

impl Variant {
    /// Whether all parts are there.
    pub fn is_whole(&self) -> bool {
        self.files.len() as u64 == self.count
    }

    /// The path of its first part.
    pub(crate) fn first_path(&self) -> String {
        Part { stem: self.stem.clone(), number: 1, count: self.count }.path(1)
    }
}

/// What to type after `repo:` for one of `all`: its quantisation, or a path where that would not do.
pub(crate) fn typed(repo: &RepoId, all: &[Variant], index: usize) -> String {
    let label = &all[index].label;
    let name = HubName::parse(&format!("{repo}:{label}"));
    let found = name.ok().and_then(|name| select(repo.as_str(), all, &name.wanted).ok());
    if found == Some(vec![index]) { label.clone() } else { all[index].first_path() }
}

/// Groups files, each a path and its bytes; smallest models first.
pub(crate) fn group<'a>(
    files: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<Vec<Variant>, SelectError> {
    let mut found: BTreeMap<(String, u64), Vec<Numbered>> = BTreeMap::new();
    for (index, (path, bytes)) in files.into_iter().enumerate() {
        let part = Part::of(path);
        let numbered = Numbered { number: part.number, index, bytes };
        found.entry((part.stem, part.count)).or_default().push(numbered);
    }
    let variants = found.into_iter().map(|((stem, count), parts)| variant(stem, count, parts));
    let mut all = variants.collect::<Result<Vec<Variant>, _>>()?;
    all.sort_by(|a, b| (a.bytes, &a.stem).cmp(&(b.bytes, &b.stem)));
    Ok(all)
}

/// A part among others: its number, which file it is, and its bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Numbered {
    number: u64,
    index: usize,
    bytes: u64,
}

fn variant(stem: String, count: u64, mut parts: Vec<Numbered>) -> Result<Variant, SelectError> {
    parts.sort_unstable();
    let sum = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.bytes));
    let bytes = sum
        .filter(|sum| *sum <= MAX_MODEL_BYTES)
        .ok_or_else(|| SelectError::Size { name: stem.clone() })?;
    let files = parts.into_iter().map(|part| part.index).collect();
    Ok(Variant { label: label(&stem), stem, files, count, bytes })
}

/// Indices of the one that `wanted` names; of all where it names none. `of` is for messages.
pub(crate) fn select(
    of: &str,
    all: &[Variant],
    wanted: &Wanted,
) -> Result<Vec<usize>, SelectError> {
    let of = of.to_owned();
    if all.is_empty() {
        return Err(SelectError::Empty { of });
    }
    let (text, found) = match wanted {
        Wanted::Any => return Ok((0..all.len()).collect()),
        Wanted::File(path) => {
            let part = Part::of(path);
            let own = |variant: &Variant| variant.stem == part.stem && variant.count == part.count;
            (path, matching(all, own))
        }
        Wanted::Quantisation(name) => (name, with_label(all, name)),
    };
    let wanted = text.clone();
    match &found[..] {
        [_] => Ok(found),
        [] => Err(SelectError::NotThere { of, wanted, there: offered(all) }),
        several => {
            let name = |index: &usize| format!("{of}:{}", all[*index].first_path());
            let there = several.iter().map(name).collect::<Vec<_>>().join(", ");
            Err(SelectError::Several { of, wanted, there })
        }
    }
}

/// By its whole label; else by what follows `UD-`.
fn with_label(all: &[Variant], name: &str) -> Vec<usize> {
    let same = matching(all, |variant| variant.label.eq_ignore_ascii_case(name));
    let dynamic = format!("UD-{name}");
    match same.is_empty() {
        true => matching(all, |variant| variant.label.eq_ignore_ascii_case(&dynamic)),
        false => same,
    }
}

fn matching(all: &[Variant], is: impl Fn(&Variant) -> bool) -> Vec<usize> {
    all.iter().enumerate().filter(|(_, variant)| is(variant)).map(|(index, _)| index).collect()
}

/// `Q2_K (10.5 GiB), Q4_K_M (17.3 GiB)`.
fn offered(all: &[Variant]) -> String {
    let one = |variant: &Variant| format!("{} ({})", variant.label, format_bytes(variant.bytes));
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Which part of what a path names.
pub(crate) struct Part {
    pub(crate) stem: String,
    /// From 1.
    pub(crate) number: u64,
    pub(crate) count: u64,
}

impl Part {
    /// `x-00002-of-00003.gguf` is part 2 of 3 of `x`; anything else is one of one.
    pub(crate) fn of(path: &str) -> Self {
        let stem = path.get(..path.len().saturating_sub(".gguf".len())).unwrap_or(path);
        let split = || {
            let (rest, count) = stem.rsplit_once("-of-")?;
            let (prefix, number) = rest.rsplit_once('-')?;
            let (number, count) = (five_digits(number)?, five_digits(count)?);
            let sound = (1..=count).contains(&number) && count <= MAX_PARTS && !prefix.is_empty();
            sound.then(|| Self { stem: prefix.to_owned(), number, count })
        };
        split().unwrap_or_else(|| Self { stem: stem.to_owned(), number: 1, count: 1 })
    }

    /// The path of part `number`.
    pub(crate) fn path(&self, number: u64) -> String {
        match self.count {
            1 => format!("{}.gguf", self.stem),
            count => format!("{}-{number:05}-of-{count:05}.gguf", self.stem),
        }
    }
}

fn five_digits(text: &str) -> Option<u64> {
    let sound = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| text.parse().ok())?
}

/// The quantisation a file's name ends in, in capitals; else the name itself.
fn label(stem: &str) -> String {
    let name = stem.rsplit('/').next().unwrap_or(stem);
    let words: Vec<&str> = name.split(['-', '.']).collect();
    let Some(at) = words.iter().rposition(|word| is_quantisation(word)) else {
        return name.to_owned();
    };
    let dynamic = at > 0 && words[at - 1].eq_ignore_ascii_case("UD");
    let label = words[at].to_ascii_uppercase();
    if dynamic { format!("UD-{label}") } else { label }
}

/// `Q4_K_M`, `IQ2_XXS`, `TQ1_0`, `MXFP4_MOE`, `BF16`, `F32`.
fn is_quantisation(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let digit_after = |prefix: &str| {
        let rest = word.strip_prefix(prefix).unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let whole = ["F16", "F32", "BF16", "FP16", "FP32"].contains(&word.as_str());
    whole || ["Q", "IQ", "TQ", "MXFP", "NVFP"].iter().any(|prefix| digit_after(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo() -> Vec<Variant> {
        let files = [
            ("BF16/m-BF16-00002-of-00002.gguf", 30),
            ("BF16/m-BF16-00001-of-00002.gguf", 31),
            ("m-Q4_K_M.gguf", 20),
            ("m-UD-IQ1_S.gguf", 9),
            ("m.gguf", 5),
        ];
        group(files).unwrap()
    }

    #[test]
    fn parts_are_put_together_and_labels_told() {
        let all = repo();
        let labels: Vec<&str> = all.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(labels, ["m", "UD-IQ1_S", "Q4_K_M", "BF16"]);
        assert_eq!((all[3].files.as_slice(), all[3].bytes), (&[1, 0][..], 61));
        assert!(all.iter().all(Variant::is_whole));
        for (stem, expected) in [
            ("gpt-oss-20b-mxfp4", "MXFP4"),
            ("x.i1-Q2_K_S", "Q2_K_S"),
            ("Qwen3-30B-A3B-Q8_0-imat", "Q8_0"),
            ("Qwen3-30B-A3B", "Qwen3-30B-A3B"),
        ] {
            assert_eq!(label(stem), expected);
        }
    }

    #[test]
    fn one_is_found_by_its_quantisation_or_file() {
        let all = repo();
        let found = |wanted| select("a/b", &all, &wanted).map(|found| all[found[0]].stem.clone());
        let quant = |name: &str| found(Wanted::Quantisation(name.into()));
        assert_eq!(quant("q4_k_m").unwrap(), "m-Q4_K_M");
        assert_eq!(quant("IQ1_S").unwrap(), "m-UD-IQ1_S");
        let file = Wanted::File("BF16/m-BF16-00002-of-00002.gguf".into());
        assert_eq!(found(file).unwrap(), "BF16/m-BF16");
        let missing = quant("Q6_K").unwrap_err().to_string();
        assert!(
            missing.contains("m (5 B), UD-IQ1_S (9 B), Q4_K_M (20 B), BF16 (61 B)"),
            "{missing}"
        );
        let twice = group([("x-Q4_0.gguf", 1), ("y-Q4_0.gguf", 1)]).unwrap();
        let wanted = Wanted::Quantisation("Q4_0".into());
        let several = select("a/b", &twice, &wanted).unwrap_err().to_string();
        assert!(several.contains("a/b:x-Q4_0.gguf, a/b:y-Q4_0.gguf"), "{several}");
        let repo = RepoId::parse("a/b").unwrap();
        assert_eq!((typed(&repo, &all, 3), typed(&repo, &twice, 1)), {
            ("BF16".to_owned(), "y-Q4_0.gguf".to_owned())
        });
        assert_eq!(select("a/b", &all, &Wanted::Any).unwrap(), [0, 1, 2, 3]);
        assert!(matches!(select("a/b", &[], &Wanted::Any), Err(SelectError::Empty { .. })));
    }

    #[test]
    fn hostile_sizes_and_numbers_are_refused() {
        let sizes = [("m-00001-of-00002.gguf", u64::MAX), ("m-00002-of-00002.gguf", 2)];
        assert!(matches!(group(sizes), Err(SelectError::Size { .. })));
        for odd in ["m-00003-of-00002", "m-00000-of-00002", "m-1-of-2", "-00001-of-00001"] {
            assert_eq!(Part::of(&format!("{odd}.gguf")).count, 1, "{odd}");
        }
        assert_eq!(Part::of("m-00001-of-99999.gguf").stem, "m-00001-of-99999");
        let one = group([("m-00002-of-00003.gguf", 1)]).unwrap();
        assert!(!one[0].is_whole());
    }
}
