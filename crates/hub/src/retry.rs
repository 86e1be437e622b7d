//! How often something is tried again, and when. Waits; what is tried is the caller's.

use crate::error::FetchError;
use crate::limits::QUESTION_ATTEMPTS;
use std::time::Duration;

/// Attempts and waits between them; each wait is twice the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in a row that bring nothing.
    pub attempts: u32,
    /// After the first of them.
    pub first_wait: Duration,
    pub longest_wait: Duration,
}

impl Default for Retry {
    /// Some two minutes in all.
    fn default() -> Self {
        Self {
            attempts: 8,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }
}

impl Retry {
    /// How long to wait after `failures` in a row; `None` when that was the last.
    pub(crate) fn wait_after(&self, failures: u32, error: &FetchError) -> Option<Duration> {
        if failures >= self.attempts || !error.may_pass() {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(1 << failures.saturating_sub(1).min(16));
        Some(doubled.min(self.longest_wait).max(error.asked_wait()))
    }

    /// A small question, tried until it succeeds or fails for good. Somebody waits for the answer
    /// and sees nothing meanwhile, so not as often as a download.
    pub(crate) fn until<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, FetchError>,
    ) -> Result<T, FetchError> {
        let few = Self { attempts: self.attempts.min(QUESTION_ATTEMPTS), ..*self };
        let mut failures = 0;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(error) => {
                    failures += 1;
                    let Some(wait) = few.wait_after(failures, &error) else { return Err(error) };
                    tracing::info!("trying again in {wait:?}: {error}");
                    std::thread::sleep(wait);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end() {
        let retry = Retry {
            attempts: 4,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(3),
        };
        let passing = FetchError::Early { url: String::new(), bytes: 0 };
        let waits: Vec<_> = (1..6).map(|n| retry.wait_after(n, &passing)).collect();
        let millis = |n| Some(Duration::from_millis(n));
        assert_eq!(waits, [millis(1), millis(2), millis(3), None, None]);
        let lasting = FetchError::Range { url: String::new(), asked: 0, said: String::new() };
        assert_eq!(retry.wait_after(1, &lasting), None);
    }
}
