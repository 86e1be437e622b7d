//! What a run without faults answers, computed without any of the engine's code.

use crate::disk::true_fingerprint;
use crate::hash::mix;
use crate::plan::{ClientPlan, ExpertsPlan, VOCAB};
use motley_engine::batching::Reason;
use motley_model::LayerExperts;

/// Length of a stop string, in tokens.
const STOP_TOKENS: usize = 2;

/// The answer to one request.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) text: String,
    pub(crate) reason: Reason,
    pub(crate) tokens: usize,
    /// The stop string to ask with.
    pub(crate) stop: Option<String>,
}

/// What the model says, as a function.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    layers: u16,
    experts: u16,
    used: u16,
    /// Of each expert, layer by layer.
    fingerprints: Vec<u64>,
}

impl Truth {
    pub(crate) fn new(plan: &ExpertsPlan, layers: &[LayerExperts]) -> Self {
        let of = |layer| (0..u32::from(plan.experts)).map(move |e| true_fingerprint(layer, e));
        Self {
            layers: plan.layers,
            experts: plan.experts,
            used: plan.used,
            fingerprints: layers.iter().flat_map(of).collect(),
        }
    }

    pub(crate) fn layers(&self) -> u16 {
        self.layers
    }

    /// The state of a sequence after one more token.
    pub(crate) fn after(state: u64, token: i32) -> u64 {
        mix(state ^ mix(token as u64 + 1))
    }

    /// The experts that a token in this state asks for in `layer`; one may come twice.
    pub(crate) fn routed(&self, state: u64, layer: u16) -> impl Iterator<Item = u16> {
        let experts = u64::from(self.experts);
        let place = state ^ u64::from(layer) << 32;
        (0..self.used).map(move |slot| (mix(place ^ u64::from(slot) << 48) % experts) as u16)
    }

    pub(crate) fn fingerprint(&self, layer: u16, expert: u16) -> u64 {
        self.fingerprints[usize::from(layer) * usize::from(self.experts) + usize::from(expert)]
    }

    /// The token that follows, from the state and the sum of what its experts hold.
    pub(crate) fn next(state: u64, sum: u64) -> i32 {
        (mix(state.wrapping_add(sum)) % VOCAB as u64) as i32
    }

    fn says(&self, state: u64) -> i32 {
        let layers = (0..self.layers).flat_map(|layer| {
            self.routed(state, layer).map(move |expert| self.fingerprint(layer, expert))
        });
        Self::next(state, layers.fold(0, u64::wrapping_add))
    }

    /// The answer to `plan` where a sequence may get `longest` tokens long.
    pub(crate) fn answer(&self, plan: &ClientPlan, longest: usize) -> Expected {
        let most = plan.max_tokens.min((longest + 1).saturating_sub(plan.prompt.len())).max(1);
        let mut state = plan.prompt.iter().fold(0, |state, &token| Self::after(state, token));
        let (mut said, mut reason) = (Vec::new(), Reason::Length);
        let mut tokens = 0;
        while tokens < most {
            let token = self.says(state);
            tokens += 1;
            if token == 0 && !plan.ignore_end {
                reason = Reason::Stop;
                break;
            }
            said.push(token);
            state = Self::after(state, token);
        }
        let text: String = said.iter().map(|&token| letter(token)).collect();
        let stop = plan.stop_at.and_then(|at| text.get(at..at + STOP_TOKENS)).map(str::to_owned);
        // Letters are single bytes: the place of one is the number of tokens before it.
        match stop.as_ref().and_then(|stop| text.find(stop.as_str())) {
            Some(at) => Expected {
                text: text[..at].to_owned(),
                reason: Reason::StopString(0),
                tokens: at + STOP_TOKENS,
                stop,
            },
            None => Expected { text, reason, tokens, stop },
        }
    }
}

/// A token as text: one ASCII letter each.
pub(crate) fn letter(token: i32) -> char {
    char::from(b'0' + token as u8)
}
