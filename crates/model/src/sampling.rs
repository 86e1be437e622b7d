//! How a model's makers say tokens are to be chosen (`general.sampling.*`). Chooses none.

use crate::gguf::Metadata;

/// Largest temperature that is taken from a file.
const TEMPERATURE_MAX: f64 = 5.0;
/// Largest penalty for repeated tokens.
const PENALTY_MAX: f64 = 10.0;
/// Longest window the penalty looks at, in tokens.
const WINDOW_MAX: u64 = 65_536;

/// What the file says; `None` where it says nothing, or something that is no such value. Samplers
/// that Motley does not offer (`mirostat`, `xtc_…`, `sequence`) are not read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingHints {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repeat_penalty: Option<f32>,
    /// Recent tokens the penalty looks at.
    pub repeat_window: Option<u32>,
}

impl SamplingHints {
    pub(crate) fn read(metadata: &Metadata) -> Self {
        let value = |name: &str| metadata.get(&format!("general.sampling.{name}"));
        let number = |name: &str, most: f64| {
            let found = value(name)?.as_f64()?;
            (0.0..=most).contains(&found).then_some(found as f32)
        };
        let count = |name: &str, most: u64| {
            let found = value(name)?.as_u64()?;
            (found <= most).then_some(found as u32)
        };
        Self {
            temperature: number("temp", TEMPERATURE_MAX),
            top_k: count("top_k", i32::MAX as u64),
            top_p: number("top_p", 1.0),
            min_p: number("min_p", 1.0),
            repeat_penalty: number("penalty_repeat", PENALTY_MAX).filter(|&found| found > 0.0),
            repeat_window: count("penalty_last_n", WINDOW_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::MetaValue;

    fn read(entries: &[(&str, MetaValue)]) -> SamplingHints {
        let mut metadata = Metadata::new();
        for (name, value) in entries {
            metadata.insert(&format!("general.sampling.{name}"), value.clone());
        }
        SamplingHints::read(&metadata)
    }

    #[test]
    fn what_the_makers_say_is_taken() {
        let said = read(&[
            ("temp", 0.6_f32.into()),
            ("top_k", 20_i32.into()),
            ("top_p", 0.95_f32.into()),
            ("min_p", 0.0_f32.into()),
            ("penalty_repeat", 1.05_f32.into()),
            ("penalty_last_n", 64_i32.into()),
        ]);
        let expected = SamplingHints {
            temperature: Some(0.6),
            top_k: Some(20),
            top_p: Some(0.95),
            min_p: Some(0.0),
            repeat_penalty: Some(1.05),
            repeat_window: Some(64),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn values_nobody_can_mean_are_left_out() {
        let nonsense = read(&[
            ("temp", f32::NAN.into()),
            ("top_k", (-1_i32).into()),
            ("top_p", 1.5_f32.into()),
            ("min_p", "much".into()),
            ("penalty_repeat", 0.0_f32.into()),
            ("penalty_last_n", u64::MAX.into()),
        ]);
        assert_eq!(nonsense, SamplingHints::default());
    }
}
