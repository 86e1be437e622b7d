//! Which tokens come next, by what followed the same few tokens before: prompts are quoted, code and
//! tables repeat, and models do. Knows tokens by their numbers only.
//!
//! A table has, for each hash of two to four neighbouring tokens, the newest position that follows
//! such tokens; each position has the one before it in the same place. So the newest match is found
//! in a few looks, and what was added last can be taken back exactly.
//!
//! ```text
//! tokens    a b c d a b c │ d       the last one is given with the question
//! newest    "b c d" → 4   ▲         positions of the token that followed
//! guess     a b c d …               and what has been guessed is gone on with
//! ```

/// Most tokens that are compared: longer matches are hardly more often right.
pub const LONGEST: usize = 4;
/// Fewest: one token alone says too little.
pub const SHORTEST: usize = 2;
/// How many lengths there are.
pub const LENGTHS: usize = LONGEST - SHORTEST + 1;

/// Places in the table, a power of two; more tokens than that share them.
const PLACES_BITS: u32 = 15;
/// Positions looked at in one place, most of them of other tokens with the same hash.
const LOOKS: usize = 8;
/// No position.
const NONE: u32 = u32::MAX;

/// What followed the same tokens before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// In their order; empty where nothing is known.
    pub tokens: Vec<i32>,
    /// How many tokens were the same where they were found.
    pub matched: usize,
}

/// The tokens of one timeline, by what precedes them. 16 bytes for each, and 384 KiB.
#[derive(Debug, Clone)]
pub struct Lookup {
    tokens: Vec<i32>,
    /// By hash and length: the newest position that follows such tokens.
    newest: Vec<[u32; LENGTHS]>,
    /// By position and length: what was in that place before.
    earlier: Vec<[u32; LENGTHS]>,
}

impl Default for Lookup {
    fn default() -> Self {
        let newest = vec![[NONE; LENGTHS]; 1 << PLACES_BITS];
        Self { tokens: Vec::new(), newest, earlier: Vec::new() }
    }
}

impl Lookup {
    /// All tokens, from the first on.
    pub fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    /// Adds a token at the end.
    pub fn push(&mut self, token: i32) {
        let end = self.tokens.len();
        let mut earlier = [NONE; LENGTHS];
        for (at, earlier) in earlier.iter_mut().enumerate() {
            if let Some(place) = self.place_before(end, at) {
                *earlier = std::mem::replace(&mut self.newest[place][at], end as u32);
            }
        }
        self.earlier.push(earlier);
        self.tokens.push(token);
    }

    /// Forgets all but the first `len` tokens, as if the others had never been there.
    pub fn truncate(&mut self, len: usize) {
        while self.tokens.len() > len {
            self.tokens.pop();
            let earlier = self.earlier.pop().unwrap_or([NONE; LENGTHS]);
            let end = self.tokens.len();
            for (at, earlier) in earlier.into_iter().enumerate() {
                if let Some(place) = self.place_before(end, at) {
                    self.newest[place][at] = earlier;
                }
            }
        }
    }

    /// What may follow `last`, which follows what is there; at most `most` tokens. Where a match is
    /// so near that its end is reached, the guess goes on with itself: a loop is guessed whole.
    pub fn guess(&self, last: i32, most: usize) -> Found {
        let Some((from, matched)) = self.find(last).filter(|_| most > 0) else {
            return Found::default();
        };
        let mut tokens = Vec::with_capacity(most);
        for at in from..from + most {
            let known = self.tokens.get(at).copied();
            let beyond = at.checked_sub(self.tokens.len());
            let token = known.or_else(|| match beyond? {
                0 => Some(last),
                beyond => tokens.get(beyond - 1).copied(),
            });
            tokens.extend(token);
        }
        Found { tokens, matched }
    }

    /// The newest position whose preceding tokens are the last ones and `last`, and how many are.
    fn find(&self, last: i32) -> Option<(usize, usize)> {
        let known = self.tokens.len().saturating_sub(LONGEST - 1);
        let mut ending = self.tokens[known..].to_vec();
        ending.push(last);
        (0..LENGTHS).rev().find_map(|at| {
            let length = SHORTEST + at;
            let wanted = &ending[ending.len().checked_sub(length)?..];
            let mut position = self.newest[place(wanted)][at];
            for _ in 0..LOOKS {
                let end = usize::try_from(position).ok().filter(|_| position != NONE)?;
                if self.tokens[end - length..end] == *wanted {
                    return Some((end, length));
                }
                position = self.earlier[end][at];
            }
            None
        })
    }

    /// The place of the tokens before `end`, of the length with this number.
    fn place_before(&self, end: usize, at: usize) -> Option<usize> {
        let from = end.checked_sub(SHORTEST + at)?;
        Some(place(&self.tokens[from..end]))
    }
}

fn place(tokens: &[i32]) -> usize {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = |hash: u64, &token: &i32| (hash.rotate_left(23) ^ token as u64).wrapping_mul(MIX);
    (tokens.iter().fold(0, mixed) >> (u64::BITS - PLACES_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tokens: &[i32]) -> Lookup {
        let mut lookup = Lookup::default();
        tokens.iter().for_each(|&token| lookup.push(token));
        lookup
    }

    fn check(tokens: &[i32], last: i32, expected: (&[i32], usize)) {
        let guess = of(tokens).guess(last, 4);
        assert_eq!((guess.tokens.as_slice(), guess.matched), expected, "{tokens:?} {last}");
    }

    #[test]
    fn what_followed_the_longest_match_comes_next() {
        check(&[1, 2, 3, 4, 9, 8, 7, 6, 1, 2, 3], 4, (&[9, 8, 7, 6], 4));
        // Three tokens before 6 are the same, and two before the newer 5.
        check(&[1, 2, 3, 6, 0, 9, 2, 3, 5, 0, 1, 2], 3, (&[6, 0, 9, 2], 3));
        check(&[7, 2, 3, 6, 0, 9, 2, 3, 5, 0, 1, 2], 3, (&[5, 0, 1, 2], 2));
        check(&[1, 2, 3, 4], 5, (&[], 0));
        check(&[], 5, (&[], 0));
        check(&[5], 5, (&[], 0));
    }

    #[test]
    fn a_loop_is_guessed_past_its_end() {
        check(&[1, 2, 1, 2, 1], 2, (&[1, 2, 1, 2], 4));
        check(&[5, 5, 5], 5, (&[5, 5, 5, 5], 2));
        check(&[9, 8, 1, 2, 3, 1, 2], 3, (&[1, 2, 3, 1], 3));
    }

    #[test]
    fn what_is_taken_back_leaves_nothing_behind() {
        let tokens: Vec<i32> = (0..300).map(|at| (at * at) % 17).collect();
        let mut lookup = of(&tokens);
        for len in [300, 299, 250, 249, 100, 3, 1, 0] {
            lookup.truncate(len);
            let fresh = of(&tokens[..len]);
            assert_eq!((&lookup.tokens, &lookup.newest), (&fresh.tokens, &fresh.newest), "{len}");
            for last in 0..17 {
                assert_eq!(lookup.guess(last, 5), fresh.guess(last, 5), "{len} {last}");
            }
        }
    }

    #[test]
    fn more_tokens_than_places_still_find_the_newest() {
        let spread = |at: i32| at.wrapping_mul(7919) % 100_003;
        let many: Vec<i32> = (0..200_000).map(spread).collect();
        let lookup = of(&many);
        let end = 199_000;
        let mut cut = lookup.clone();
        cut.push(-1);
        (end - 3..end).for_each(|at| cut.push(many[at as usize]));
        let guess = cut.guess(many[end as usize], 3);
        assert_eq!(guess.tokens, many[end as usize + 1..end as usize + 4]);
        assert_eq!(lookup.guess(-7, 3), Found::default());
    }
}
