//! What a session holds already is not computed again: questions share their examples,
//! choices share their question.

use crate::session::{Session, SessionError};

/// A session and the tokens in it.
pub(crate) struct Prefix<'s> {
    session: &'s mut Session,
    held: Vec<i32>,
    /// Logits after the last of `held`, `[vocab]`.
    last_logits: Vec<f32>,
}

impl<'s> Prefix<'s> {
    /// Starts from nothing.
    pub(crate) fn new(session: &'s mut Session) -> Self {
        session.clear();
        Self { session, held: Vec::new(), last_logits: Vec::new() }
    }

    /// Holds nothing again.
    pub(crate) fn forget(&mut self) {
        self.session.clear();
        self.held.clear();
    }

    /// Makes the session hold exactly `tokens` (at least one); their last logits.
    pub(crate) fn hold(&mut self, tokens: &[i32]) -> Result<&[f32], SessionError> {
        let common = common(&self.held, tokens);
        if common < tokens.len() || common < self.held.len() {
            // The last token is computed even when it is there, for its logits.
            let kept = self.cut(common.min(tokens.len().saturating_sub(1)));
            self.session.prefill(&tokens[kept..])?;
            self.last_logits.clear();
            self.last_logits.extend_from_slice(self.session.logits());
            self.held.extend_from_slice(&tokens[kept..]);
        }
        Ok(&self.last_logits)
    }

    /// Computes `more` after what is held, shows each token's logits, and forgets it.
    pub(crate) fn try_out(
        &mut self,
        more: &[i32],
        on_logits: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), SessionError> {
        let held = self.held.len() as u32;
        self.session.score(more, on_logits)?;
        if !self.session.truncate(held) {
            // This model's memory cannot be cut: it is computed again.
            let tokens = std::mem::take(&mut self.held);
            self.session.clear();
            self.hold(&tokens)?;
        }
        Ok(())
    }

    /// Forgets all but the first `tokens`; how many are left (0 when it cannot be cut).
    fn cut(&mut self, tokens: usize) -> usize {
        let kept = if self.session.truncate(tokens as u32) { tokens } else { 0 };
        if kept == 0 {
            self.session.clear();
        }
        self.held.truncate(kept);
        kept
    }
}

/// Tokens two sequences begin with alike.
pub(crate) fn common(first: &[i32], second: &[i32]) -> usize {
    first.iter().zip(second).take_while(|(a, b)| a == b).count()
}
