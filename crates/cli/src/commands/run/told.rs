//! Whoever asked is told how each answer went. Answers nothing.

use super::figures::{Expected, Took, Units, closing, figures};
use super::talk::{Answer, Talk};
use crate::args::Global;
use crate::terminal::note;
use anyhow::Result;

/// Who is told about answers, and of what.
pub(super) struct Told<'a> {
    pub(super) global: &'a Global,
    pub(super) units: Units<'a>,
    pub(super) expected: Expected,
}

impl Told<'_> {
    /// Has `talk` answer, and says how that went.
    pub(super) fn answered(
        &self,
        talk: &mut Talk<'_>,
        answer: impl FnOnce(&mut Talk<'_>) -> Result<Answer>,
    ) -> Result<Answer> {
        let before = talk.session.stats();
        let answer = answer(talk)?;
        let after = talk.session.stats();
        if self.global.json {
            return Ok(answer);
        }
        note(&closing(&answer, &Took::between(&before, &after), &self.expected));
        if self.global.verbose > 0 {
            note(&(figures(&after) + &self.units.said()));
        }
        Ok(answer)
    }
}
