//! llama.cpp's sampler chain. Which samplers, with which values, is the caller's choice.

use super::context::Context;
use llama_cpp_sys_2 as sys;
use std::ptr::NonNull;

/// One link of a chain, in llama.cpp's terms.
#[derive(Debug, Clone, PartialEq)]
pub enum SamplerStage {
    /// Add to the logits of some tokens.
    Bias(Vec<TokenBias>),
    /// Penalise repeated tokens of the last `last_tokens`.
    Penalties {
        /// Window; 0 turns the stage off.
        last_tokens: i32,
        /// Multiplicative penalty; 1 is none.
        repeat: f32,
        /// Penalty per occurrence; 0 is none.
        frequency: f32,
        /// Penalty for any occurrence; 0 is none.
        presence: f32,
    },
    /// Keep the `k` most likely; 0 keeps all.
    TopK(i32),
    /// Keep the smallest set whose probability reaches `p`.
    TopP(f32),
    /// Keep tokens at least `p` times as likely as the best.
    MinP(f32),
    /// Divide logits by the temperature.
    Temperature(f32),
    /// Draw from what is left, seeded.
    Draw(u32),
    /// Take the most likely.
    Greedy,
}

/// What is added to a token's logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBias {
    pub token: i32,
    pub bias: f32,
}

/// A chain with its state (penalty window, random state).
pub struct Sampler {
    raw: NonNull<sys::llama_sampler>,
    /// Whether the chain only takes the most likely: then no candidates are written out.
    greedy: bool,
    /// Kept between tokens: the vocabulary is too large to allocate it for each.
    candidates: Vec<sys::llama_token_data>,
}

// SAFETY: owned state, reached through `&mut self` only.
unsafe impl Send for Sampler {}

impl Sampler {
    /// Chains `stages` in order; `vocab_size` is the model's.
    pub fn new(stages: &[SamplerStage], vocab_size: usize) -> Self {
        // SAFETY: the chain takes ownership of each sampler added to it.
        unsafe {
            let chain = sys::llama_sampler_chain_init(sys::llama_sampler_chain_default_params());
            for stage in stages {
                sys::llama_sampler_chain_add(chain, stage_raw(stage, vocab_size));
            }
            let raw = NonNull::new(chain).expect("llama.cpp allocates samplers or aborts");
            let greedy = stages == [SamplerStage::Greedy];
            Self { raw, greedy, candidates: Vec::new() }
        }
    }

    /// Samples from the logits of the batch's token at `index` and remembers the choice;
    /// `None` when there are no logits.
    pub fn sample(&mut self, context: &Context, index: usize) -> Option<i32> {
        self.sample_from(context.logits(index)?)
    }

    /// As [`Sampler::sample`], from the logits themselves, `[vocab]`.
    pub fn sample_from(&mut self, logits: &[f32]) -> Option<i32> {
        let token = self.choose(logits)?;
        self.accept(token);
        Some(token)
    }

    /// The chain's choice, not remembered.
    pub fn choose(&mut self, logits: &[f32]) -> Option<i32> {
        match self.greedy {
            true => likeliest(logits),
            false => self.choose_among(logits, |_| true),
        }
    }

    /// As [`Sampler::choose`], of the tokens that `allowed` lets pass; `None` without any.
    pub fn choose_among(&mut self, logits: &[f32], allowed: impl Fn(i32) -> bool) -> Option<i32> {
        let data = |(id, &logit)| sys::llama_token_data { id: id as i32, logit, p: 0.0 };
        self.candidates.clear();
        let candidates = logits.iter().enumerate().map(data);
        self.candidates.extend(candidates.filter(|candidate| allowed(candidate.id)));
        if self.candidates.is_empty() {
            return None;
        }
        let mut array = sys::llama_token_data_array {
            data: self.candidates.as_mut_ptr(),
            size: self.candidates.len(),
            selected: -1,
            sorted: false,
        };
        // SAFETY: chain and candidates are live for the call.
        unsafe { sys::llama_sampler_apply(self.raw.as_ptr(), &raw mut array) };
        let chosen = usize::try_from(array.selected).ok()?;
        self.candidates.get(chosen).map(|candidate| candidate.id)
    }

    /// Remembers a token that was not sampled here (the prompt's).
    pub fn accept(&mut self, token: i32) {
        // SAFETY: the chain is live.
        unsafe { sys::llama_sampler_accept(self.raw.as_ptr(), token) }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: made once, freed once, with the stages it owns.
        unsafe { sys::llama_sampler_free(self.raw.as_ptr()) }
    }
}

/// The first of the largest, as llama.cpp's greedy sampler takes it. In lanes, so that the
/// compiler compares a whole register at a time; what is no number is passed over.
fn likeliest(logits: &[f32]) -> Option<i32> {
    const LANES: usize = 16;
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = logits.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, larger);
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, logit);
        }
    }
    let largest = lanes.into_iter().fold(rest, larger);
    logits.iter().position(|&logit| logit == largest).map(|at| at as i32)
}

unsafe fn stage_raw(stage: &SamplerStage, vocab_size: usize) -> *mut sys::llama_sampler {
    // SAFETY: plain constructors.
    unsafe {
        match *stage {
            SamplerStage::Bias(ref biases) => {
                let raw =
                    |one: &TokenBias| sys::llama_logit_bias { token: one.token, bias: one.bias };
                let biases: Vec<_> = biases.iter().map(raw).collect();
                // They are copied.
                sys::llama_sampler_init_logit_bias(
                    vocab_size as i32,
                    biases.len() as i32,
                    biases.as_ptr(),
                )
            }
            SamplerStage::Penalties { last_tokens, repeat, frequency, presence } => {
                sys::llama_sampler_init_penalties(
                    vocab_size as i32,
                    last_tokens,
                    repeat,
                    frequency,
                    presence,
                )
            }
            SamplerStage::TopK(k) => sys::llama_sampler_init_top_k(k),
            SamplerStage::TopP(p) => sys::llama_sampler_init_top_p(p, 1),
            SamplerStage::MinP(p) => sys::llama_sampler_init_min_p(p, 1),
            SamplerStage::Temperature(t) => sys::llama_sampler_init_temp(t),
            SamplerStage::Draw(seed) => sys::llama_sampler_init_dist(seed),
            SamplerStage::Greedy => sys::llama_sampler_init_greedy(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equally_likely_tokens_is_taken() {
        assert_eq!(likeliest(&[1.0, 3.0, 3.0, -1.0]), Some(1));
        assert_eq!(likeliest(&[f32::NEG_INFINITY, -7.0]), Some(1));
        assert_eq!(likeliest(&[]), None);
    }

    #[test]
    fn the_shortcut_says_what_the_chain_says() {
        let logits: Vec<f32> = (0..1000).map(|at| ((at * 7919) % 613) as f32).collect();
        let mut sampler = Sampler::new(&[SamplerStage::Greedy], logits.len());
        assert!(sampler.greedy);
        assert_eq!(sampler.choose_among(&logits, |_| true), likeliest(&logits));
        let drawn = [SamplerStage::Temperature(1.0), SamplerStage::Draw(1)];
        assert!(!Sampler::new(&drawn, logits.len()).greedy);
    }
}
