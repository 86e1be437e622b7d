//! Accepted implies enforced: a schema is refused, or every answer drawn within it satisfies it
//! by an independent validator. No model: tokens are drawn at random from the mask, over a
//! vocabulary of bytes and a few longer tokens. Also the entry of a fuzz target.

use motley_engine::text::constraint::{Constraint, ConstraintError, Token, Vocabulary};
use serde_json::Value;
use std::sync::OnceLock;

/// Longest answer that is drawn; from the half on, everything is closed as soon as it may be.
const TOKENS_MAX: usize = 600;
/// Tokens of more than one byte, so that masks end within and across the parts of a JSON text.
const WORDS: [&str; 24] = [
    "{\"", "\":", "\": ", "\",", ", ", "\"}", "]}", "[[", "true", "null", "false", "12", "00",
    "-1", ".5", "e1", "20", "a", "ab", "foo", "bar", "name", "\u{e9}", "\\n",
];

/// What became of a schema.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Not taken, and why.
    Refused(ConstraintError),
    /// Taken; the answer ended by itself and satisfies it.
    Satisfied(String),
    /// Taken; the answer did not end within the harness's length, or hit a limit.
    Unfinished(Option<ConstraintError>),
    /// Taken, ended, but the validator cannot judge the schema or the answer.
    Unjudged(String),
    /// Taken, ended, and wrong.
    Broken { answer: String, why: String },
}

/// Draws one answer within `schema` (a JSON text), by `randomness`.
pub(crate) fn verdict(schema: &str, randomness: &[u8]) -> Option<Verdict> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    Some(match vocabulary().constraint(&schema) {
        Err(error) => Verdict::Refused(error),
        Ok(constraint) => match answer(constraint, &mut Random::new(randomness)) {
            Err(error) => Verdict::Unfinished(Some(error)),
            Ok(None) => Verdict::Unfinished(None),
            Ok(Some(bytes)) => judged(&schema, bytes),
        },
    })
}

/// Bytes, the words above and one token that ends.
pub(crate) fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
        let tokens = (0..count()).map(|id| Token { bytes: bytes(id), ends: id == count() - 1 });
        Vocabulary::new(tokens).expect("it is small")
    })
}

fn judged(schema: &Value, bytes: Vec<u8>) -> Verdict {
    let Ok(answer) = String::from_utf8(bytes) else {
        return Verdict::Broken { answer: String::new(), why: "no UTF-8".to_owned() };
    };
    let value: Value = match serde_json::from_str(&answer) {
        Ok(value) => value,
        // JSON has numbers that no machine has.
        Err(error) if error.to_string().contains("number out of range") => {
            return Verdict::Unjudged(answer);
        }
        Err(error) => return Verdict::Broken { answer, why: error.to_string() },
    };
    let options = jsonschema::options().should_validate_formats(true);
    let Ok(validator) = options.build(schema) else { return Verdict::Unjudged(answer) };
    if is_rounded(schema, &value) {
        return Verdict::Unjudged(answer);
    }
    match validator.iter_errors(&value).next().map(|error| error.to_string()) {
        Some(why) => Verdict::Broken { answer, why },
        None => Verdict::Satisfied(answer),
    }
}

/// Whether the validator would have to say of a number it rounded whether it is a multiple.
fn is_rounded(schema: &Value, answer: &Value) -> bool {
    fn has_large(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_f64().is_none_or(|n| n.abs() > 2_f64.powi(53)),
            Value::Array(values) => values.iter().any(has_large),
            Value::Object(values) => values.values().any(has_large),
            _ => false,
        }
    }
    schema.to_string().contains("\"multipleOf\"") && has_large(answer)
}

/// An answer that ended by itself, if it did.
fn answer(
    mut constraint: Constraint,
    random: &mut Random,
) -> Result<Option<Vec<u8>>, ConstraintError> {
    let mut said = Vec::new();
    for step in 0..TOKENS_MAX {
        let mask = constraint.mask()?;
        let allowed: Vec<usize> = (0..count()).filter(|&id| mask.allows(id as i32)).collect();
        // One token asked alone is the shortcut of greedy sampling: it says what the mask says.
        let one = random.below(count());
        assert_eq!(constraint.allows(one as i32)?, mask.allows(one as i32), "token {one}");
        let chosen = chosen(&allowed, step > TOKENS_MAX / 2, random);
        constraint.accept(chosen as i32)?;
        if chosen == count() - 1 {
            return Ok(Some(said));
        }
        said.extend(bytes(chosen));
    }
    Ok(None)
}

/// Ends and plain letters more often than their share of the vocabulary.
fn chosen(allowed: &[usize], close: bool, random: &mut Random) -> usize {
    let closing = [count() - 1, usize::from(b'"'), usize::from(b'}'), usize::from(b']')];
    if (close || random.below(4) == 0)
        && let Some(&end) = closing.iter().find(|end| allowed.contains(end))
    {
        return end;
    }
    let plain: Vec<usize> =
        allowed.iter().copied().filter(|&id| (0x20..0x7F).contains(&id) || id > 0xFF).collect();
    let from = if plain.is_empty() || random.below(8) == 0 { allowed } else { &plain };
    from[random.below(from.len())]
}

fn count() -> usize {
    256 + WORDS.len() + 2
}

fn bytes(id: usize) -> Vec<u8> {
    match id {
        0..256 => vec![id as u8],
        _ => WORDS.get(id - 256).map_or_else(Vec::new, |word| word.as_bytes().into()),
    }
}

/// Choices from bytes first, then from a generator that they seed.
struct Random<'a> {
    bytes: std::slice::Iter<'a, u8>,
    rest: fastrand::Rng,
}

impl<'a> Random<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mix = |seed: u64, byte: &u8| seed.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte);
        let seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix);
        Self { bytes: bytes.iter(), rest: fastrand::Rng::with_seed(seed) }
    }

    fn below(&mut self, limit: usize) -> usize {
        match self.bytes.next() {
            Some(&byte) if limit <= 256 => usize::from(byte) % limit,
            _ => self.rest.usize(..limit),
        }
    }
}
