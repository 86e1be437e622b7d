//! How the next token is chosen: settings a person gives, as llama.cpp's samplers.

use motley_ggml::{Sampler, SamplerStage};

/// Sampling settings. The default is greedy: the same answer every time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely token; higher is more varied.
    pub temperature: f32,
    /// Keep the `k` most likely; 0 keeps all.
    pub top_k: u32,
    /// Keep the smallest set that reaches this probability; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this times as likely as the best; 0 keeps all.
    pub min_p: f32,
    /// Divide logits of recent tokens; 1 is none.
    pub repeat_penalty: f32,
    /// How many recent tokens the penalty looks at.
    pub repeat_window: u32,
    /// Subtract per earlier occurrence; 0 is none.
    pub frequency_penalty: f32,
    /// Subtract once for any earlier occurrence; 0 is none.
    pub presence_penalty: f32,
    /// Seed of the draw.
    pub seed: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_window: 64,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: 0,
        }
    }
}

impl Sampling {
    /// The chain for these settings, in llama.cpp's default order.
    pub(crate) fn sampler(&self, vocab_size: usize) -> Sampler {
        Sampler::new(&self.stages(), vocab_size)
    }

    fn stages(&self) -> Vec<SamplerStage> {
        let mut stages = Vec::new();
        if self.has_penalty() {
            stages.push(SamplerStage::Penalties {
                last_tokens: self.repeat_window as i32,
                repeat: self.repeat_penalty,
                frequency: self.frequency_penalty,
                presence: self.presence_penalty,
            });
        }
        if self.temperature <= 0.0 {
            stages.push(SamplerStage::Greedy);
            return stages;
        }
        stages.extend([
            SamplerStage::TopK(self.top_k as i32),
            SamplerStage::TopP(self.top_p),
            SamplerStage::MinP(self.min_p),
            SamplerStage::Temperature(self.temperature),
            SamplerStage::Draw(self.seed),
        ]);
        stages
    }

    fn has_penalty(&self) -> bool {
        self.repeat_penalty != 1.0 || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_needs_no_draw() {
        assert_eq!(Sampling::default().stages(), [SamplerStage::Greedy]);
    }

    #[test]
    fn a_temperature_brings_the_whole_chain_and_the_seed_last() {
        let settings = Sampling { temperature: 0.8, seed: 7, ..Sampling::default() };
        let stages = settings.stages();
        assert_eq!(stages.len(), 5);
        assert_eq!(stages.last(), Some(&SamplerStage::Draw(7)));
    }

    #[test]
    fn penalties_come_first() {
        let settings = Sampling { repeat_penalty: 1.1, ..Sampling::default() };
        assert!(matches!(settings.stages()[0], SamplerStage::Penalties { last_tokens: 64, .. }));
    }
}
