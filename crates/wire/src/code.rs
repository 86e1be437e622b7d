//! One short code, its attempts and its time. Decides; asks no clock and no network.
//!
//! Eight digits: they are read out and typed on any keyboard, and no list of words belongs to them.
//! SPAKE2 gives a guesser one guess for each attempt and nothing to try guesses on alone, so three
//! attempts at 100 000 000 codes succeed once in 33 million.

use crate::limits::{CODE_ATTEMPTS, CODE_TIME};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::time::Instant;

const DIGITS: usize = 8;
const CODES: u32 = 100_000_000;

/// What one end shows and the other types.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Code([u8; DIGITS]);

impl Code {
    /// One nobody can guess.
    pub(crate) fn random() -> Self {
        // The largest multiple of CODES that fits; above it, some codes would come up more often.
        const FAIR: u32 = u32::MAX - u32::MAX % CODES;
        let system = SystemRandom::new();
        loop {
            let mut bytes = [0; 4];
            system.fill(&mut bytes).expect("the system has randomness");
            let drawn = u32::from_le_bytes(bytes);
            if drawn < FAIR {
                return Self::of(drawn % CODES);
            }
        }
    }

    fn of(number: u32) -> Self {
        let digit = |at: usize| b'0' + (number / 10_u32.pow((DIGITS - 1 - at) as u32) % 10) as u8;
        Self(std::array::from_fn(digit))
    }

    /// As somebody typed it; spaces and hyphens do not count.
    pub(crate) fn parse(typed: &str) -> Option<Self> {
        let separator = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'-';
        let mut digits = typed.bytes().filter(|byte| !separator(byte));
        let mut code = [0; DIGITS];
        for place in &mut code {
            *place = digits.next().filter(u8::is_ascii_digit)?;
        }
        digits.next().is_none().then_some(Self(code))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// As it is read out: `1234-5678`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, digit) in self.0.iter().enumerate() {
            let hyphen = if at == DIGITS / 2 { "-" } else { "" };
            write!(f, "{hyphen}{}", char::from(*digit))?;
        }
        Ok(())
    }
}

/// Where a worker keeps the code it has shown.
#[derive(Default)]
pub(crate) struct Desk {
    shown: Option<Shown>,
    /// Codes shown so far.
    count: u64,
}

struct Shown {
    code: Code,
    number: u64,
    since: Instant,
    attempts_left: u32,
}

/// Somebody tries the code.
pub(crate) struct Attempt {
    pub(crate) code: Code,
    number: u64,
    /// How many there are after this one.
    pub(crate) left: u32,
}

impl Desk {
    /// Shows a code, in the place of the one before.
    pub(crate) fn show(&mut self, code: Code, now: Instant) {
        self.count += 1;
        let number = self.count;
        self.shown = Some(Shown { code, number, since: now, attempts_left: CODE_ATTEMPTS });
    }

    /// Whether an attempt could begin.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.is_open(now))
    }

    /// Counts an attempt, whatever comes of it: many at once are no more than one after the other.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Attempt> {
        let shown = self.shown.as_mut().filter(|shown| shown.is_open(now))?;
        shown.attempts_left -= 1;
        let Shown { code, number, attempts_left, .. } = shown;
        Some(Attempt { code: code.clone(), number: *number, left: *attempts_left })
    }

    /// Uses up the code of an attempt that was right; false if another was before it.
    pub(crate) fn succeed(&mut self, attempt: &Attempt) -> bool {
        self.shown.take_if(|shown| shown.number == attempt.number).is_some()
    }
}

impl Shown {
    fn is_open(&self, now: Instant) -> bool {
        self.attempts_left > 0 && now.saturating_duration_since(self.since) < CODE_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn codes_are_typed_as_they_are_shown() {
        let code = Code::of(1_234_567);
        assert_eq!(code.to_string(), "0123-4567");
        for typed in ["0123-4567", "01234567", " 0123 4567\n", "0-1-2-3-4-5-6-7"] {
            assert!(Code::parse(typed).as_ref() == Some(&code), "{typed}");
        }
        for typed in ["", "0123-456", "0123-45678", "0123-456x", "٠١٢٣٤٥٦٧"] {
            assert!(Code::parse(typed).is_none(), "{typed}");
        }
        assert!(Code::random() != Code::random());
    }

    #[test]
    fn a_code_has_three_attempts() {
        let (mut desk, now) = (Desk::default(), Instant::now());
        assert!(!desk.is_open(now) && desk.begin(now).is_none());
        desk.show(Code::of(1), now);
        let left: Vec<_> = (0..5).map(|_| desk.begin(now).map(|attempt| attempt.left)).collect();
        assert_eq!(left, [Some(2), Some(1), Some(0), None, None]);
        assert!(!desk.is_open(now));
    }

    #[test]
    fn a_code_has_its_time() {
        let (mut desk, now) = (Desk::default(), Instant::now());
        desk.show(Code::of(1), now);
        assert!(desk.is_open(now + CODE_TIME - Duration::from_secs(1)));
        assert!(!desk.is_open(now + CODE_TIME) && desk.begin(now + CODE_TIME).is_none());
    }

    #[test]
    fn a_code_is_used_once() {
        let (mut desk, now) = (Desk::default(), Instant::now());
        desk.show(Code::of(1), now);
        let (first, second) = (desk.begin(now).unwrap(), desk.begin(now).unwrap());
        assert!(desk.succeed(&second) && !desk.succeed(&first));
        assert!(!desk.is_open(now));
        desk.show(Code::of(2), now);
        assert!(!desk.succeed(&first), "a code that was replaced");
        assert!(desk.is_open(now));
    }
}
