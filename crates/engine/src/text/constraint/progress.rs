//! A schema with its state: how much of an answer has been said, and what may follow. Draws no
//! tokens itself.

use super::error::ConstraintError;
use llguidance::Matcher;
use llguidance::toktrie::SimpleVob;
use std::sync::Arc;

/// A schema with its state: how much of an answer has been said.
#[derive(Clone)]
pub struct Constraint {
    matcher: Matcher,
    ends: Arc<[u32]>,
}

impl Constraint {
    /// At its beginning; `ends` are the tokens that end an answer.
    pub(super) fn new(matcher: Matcher, ends: Arc<[u32]>) -> Self {
        Self { matcher, ends }
    }

    /// Whether `token` may come next.
    pub fn allows(&mut self, token: i32) -> Result<bool, ConstraintError> {
        let Ok(token) = u32::try_from(token) else { return Ok(false) };
        if self.ends.contains(&token) {
            return self.is_whole();
        }
        if self.matcher.is_stopped() {
            return self.failure().map_or(Ok(false), Err);
        }
        let taken = self.matcher.validate_tokens(&[token]);
        taken.map(|taken| taken == 1).map_err(|_| ConstraintError::Exhausted)
    }

    /// Every token that may come next.
    pub fn mask(&mut self) -> Result<TokenMask, ConstraintError> {
        let mask = self.matcher.compute_mask_or_eos();
        let mask = mask.map_err(|_| ConstraintError::Exhausted)?;
        if mask.is_zero() { Err(ConstraintError::Stuck) } else { Ok(TokenMask(mask)) }
    }

    /// `token` was said.
    pub fn accept(&mut self, token: i32) -> Result<(), ConstraintError> {
        let token = u32::try_from(token).map_err(|_| ConstraintError::Stuck)?;
        // Once it is whole there is nothing more to follow.
        if self.ends.contains(&token) && self.is_whole()? {
            return Ok(());
        }
        self.matcher.consume_token(token).map_err(|_| ConstraintError::Exhausted)
    }

    /// Whether the answer may end here.
    pub fn is_whole(&mut self) -> Result<bool, ConstraintError> {
        match self.failure() {
            Some(error) => Err(error),
            None if self.matcher.is_stopped() => Ok(true),
            None => self.matcher.is_accepting().map_err(|_| ConstraintError::Exhausted),
        }
    }

    fn failure(&self) -> Option<ConstraintError> {
        self.matcher.is_error().then_some(ConstraintError::Exhausted)
    }
}

/// Tokens that may come next.
pub struct TokenMask(SimpleVob);

impl TokenMask {
    /// Whether `token` is one of them.
    pub fn allows(&self, token: i32) -> bool {
        usize::try_from(token).is_ok_and(|token| token < self.0.len() && self.0.get(token))
    }
}
