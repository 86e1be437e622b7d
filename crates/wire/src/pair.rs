//! Two machines whose users share a short code learn each other's certificates. Over a TLS
//! connection on which both show one and neither is known, SPAKE2 makes a key of the code and of
//! both fingerprints as each end saw them; who stands between with certificates of its own gets
//! two different keys, and a single guess.
//!
//! ```text
//! head                                       worker
//! "A" 33 bytes of SPAKE2            ──▶      an attempt is counted
//!                                   ◀──      "B" 33 bytes of SPAKE2
//! 32 bytes: HMAC, head's label      ──▶      right: the head is kept
//!                                   ◀──      verdict 1 byte, HMAC 32 bytes, worker's label
//! right: the caller keeps the worker
//! ```

use crate::code::{Attempt, Code};
use crate::error::LaneError;
use crate::keys::{Fingerprint, Identity, KeyError};
use crate::lane::dial;
use crate::tls::{self, ALPN_PAIR, Allowed};
use ring::hmac;
use rustls::AlertDescription;
use spake2::{Ed25519Group, Password, Spake2};
use std::io::{Read, Write};
use std::time::Duration;

const SHARE_BYTES: usize = 33;
const TAG_BYTES: usize = 32;
/// What each end calls itself, before its fingerprint, in SPAKE2 and under its tag.
const HEAD: &[u8] = b"motley-pair/1 head ";
const WORKER: &[u8] = b"motley-pair/1 worker ";

const CONFIRMED: u8 = 0;
const WRONG: u8 = 1;
const NOT_KEPT: u8 = 2;

/// The head's side: learns the fingerprint of the worker at `address` (`host:port`) that has shown
/// `code`, and has it keep that of `identity`. The caller keeps what is returned, under that
/// address ([`crate::Peers::add`]).
pub fn pair_with(
    address: &str,
    identity: &Identity,
    code: &str,
    timeout: Duration,
) -> Result<Fingerprint, PairError> {
    let code = Code::parse(code).ok_or(PairError::NoSuchCode)?;
    let config = tls::client(identity, Allowed::Anyone, ALPN_PAIR).map_err(LaneError::from)?;
    let mut stream = dial(address, config, timeout)?;
    let worker = tls::peer_of(&stream.conn, ALPN_PAIR)?;
    let ends = Ends { head: identity.fingerprint(), worker };
    ask(&mut stream, &code, &ends)?;
    Ok(worker)
}

/// Who is at the two ends, as one of them sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) head: Fingerprint,
    pub(crate) worker: Fingerprint,
}

impl Ends {
    fn names(&self) -> [Vec<u8>; 2] {
        [[HEAD, &self.head.0].concat(), [WORKER, &self.worker.0].concat()]
    }
}

fn ask(stream: &mut (impl Read + Write), code: &Code, ends: &Ends) -> Result<(), PairError> {
    let [head, worker] = ends.names().map(|name| spake2::Identity::new(&name));
    let (spake, share) =
        Spake2::<Ed25519Group>::start_a(&Password::new(code.as_bytes()), &head, &worker);
    say(stream, &share)?;
    // A worker whose code ended a moment ago closes the connection here.
    let share = hear::<SHARE_BYTES>(stream).map_err(|error| match error {
        LaneError::Closed => PairError::NoCode,
        error => error.into(),
    })?;
    let tags = Tags::of(spake, &share, ends)?;
    say(stream, tags.head.as_ref())?;
    let [verdict, tag @ ..] = hear::<{ 1 + TAG_BYTES }>(stream)?;
    match verdict {
        CONFIRMED => tags.check_worker(&tag),
        NOT_KEPT => Err(PairError::NotKept),
        _ => Err(PairError::WrongCode),
    }
}

/// The worker's side of one connection: checks what the other end knows, has `keep` remember it
/// and says what came of it. `begin` counts the attempt.
pub(crate) fn answer(
    stream: &mut (impl Read + Write),
    ends: &Ends,
    begin: impl FnOnce() -> Option<Attempt>,
    keep: impl FnOnce(&Attempt) -> Result<(), PairError>,
) -> Result<(), PairError> {
    let share = hear::<SHARE_BYTES>(stream)?;
    let attempt = begin().ok_or(PairError::NoCode)?;
    let tried = confirm(stream, ends, &attempt, &share);
    let result = tried.and_then(|tags| keep(&attempt).map(|()| tags));
    let (verdict, tag) = match &result {
        Ok(tags) => (CONFIRMED, tags.worker.as_ref()),
        Err(PairError::Keys(_)) => (NOT_KEPT, &[0; TAG_BYTES][..]),
        Err(_) => (WRONG, &[0; TAG_BYTES][..]),
    };
    let said = say(stream, &[&[verdict], tag].concat());
    let wrong = |error| match error {
        PairError::WrongCode => PairError::Attempt { left: attempt.left },
        error => error,
    };
    result.map_err(wrong)?;
    Ok(said?)
}

/// Whether the other end knows the code.
fn confirm(
    stream: &mut (impl Read + Write),
    ends: &Ends,
    attempt: &Attempt,
    share: &[u8],
) -> Result<Tags, PairError> {
    let [head, worker] = ends.names().map(|name| spake2::Identity::new(&name));
    let password = Password::new(attempt.code.as_bytes());
    let (spake, own_share) = Spake2::<Ed25519Group>::start_b(&password, &head, &worker);
    let tags = Tags::of(spake, share, ends)?;
    say(stream, &own_share)?;
    let tag = hear::<TAG_BYTES>(stream)?;
    tags.check_head(&tag)?;
    Ok(tags)
}

/// What each end shows the other to prove that it has the same key. The labels differ, so that
/// neither can be sent back as the other.
struct Tags {
    key: hmac::Key,
    names: [Vec<u8>; 2],
    head: hmac::Tag,
    worker: hmac::Tag,
}

impl Tags {
    fn of(spake: Spake2<Ed25519Group>, share: &[u8], ends: &Ends) -> Result<Self, PairError> {
        let secret = spake.finish(share).map_err(|_| PairError::WrongCode)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let names = ends.names();
        let [head, worker] = [0, 1].map(|end: usize| hmac::sign(&key, &names[end]));
        Ok(Self { key, names, head, worker })
    }

    fn check_head(&self, tag: &[u8]) -> Result<(), PairError> {
        hmac::verify(&self.key, &self.names[0], tag).map_err(|_| PairError::WrongCode)
    }

    fn check_worker(&self, tag: &[u8]) -> Result<(), PairError> {
        hmac::verify(&self.key, &self.names[1], tag).map_err(|_| PairError::WrongCode)
    }
}

fn say(stream: &mut impl Write, bytes: &[u8]) -> Result<(), LaneError> {
    stream.write_all(bytes)?;
    Ok(stream.flush()?)
}

fn hear<const N: usize>(stream: &mut impl Read) -> Result<[u8; N], LaneError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Why two machines do not know each other yet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// Not something a worker shows.
    #[error("a code has 8 digits, such as 1234-5678")]
    NoSuchCode,
    /// The worker has shown none, or not for as long.
    #[error(
        "the worker has no code open: codes end after one use, three attempts or ten minutes; have \
         it show another"
    )]
    NoCode,
    /// Another code, or somebody in between.
    #[error("this is not the code the worker shows, or somebody stands between the two machines")]
    WrongCode,
    /// At a worker: somebody had another code, or stood in between.
    #[error("a wrong code; attempts left: {left}")]
    Attempt { left: u32 },
    /// At a head: the worker knows the code and could not keep the key.
    #[error("the worker could not keep this machine's key; its log says why")]
    NotKept,
    /// At a worker: the key of the other end could not be kept.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// No connection.
    #[error(transparent)]
    Lane(LaneError),
}

impl From<LaneError> for PairError {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Refused { alert: AlertDescription::NoApplicationProtocol } => Self::NoCode,
            error => Self::Lane(error),
        }
    }
}
