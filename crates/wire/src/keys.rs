//! Who this machine is, and whom it knows. Two files in one folder, each written whole or not at
//! all and readable by its owner alone; what is done with them is for `tls` and `pair`.
//!
//! ```text
//! identity.pem   certificate and key; who has it is this machine
//! peers.toml     name and fingerprint of each machine that may talk to this one
//! wire.lock      held while either is written
//! ```

use crate::limits::{MAX_IDENTITY_BYTES, MAX_PEERS_BYTES};
use motley_trace::rights;
use motley_trace::whole_file::WholeFile;
use ring::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

const IDENTITY: &str = "identity.pem";
const PEERS: &str = "peers.toml";
const LOCK: &str = "wire.lock";
/// In every certificate; nothing reads it.
const NAME: &str = "motley";

/// A certificate of this machine's own making, and its key.
///
/// It never ends: peers compare fingerprints, and nobody else vouches for it.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// What `folder` has, made first where it has none.
    pub fn load_or_make(folder: &Path) -> Result<Self, KeyError> {
        let _lock = lock(folder)?;
        let path = folder.join(IDENTITY);
        let text = match read(&path, MAX_IDENTITY_BYTES)? {
            Some(text) => text,
            None => make(&path)?,
        };
        check_rights(&path)?;
        Self::parse(&text).map_err(|why| KeyError::Content { path, why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let certificate = CertificateDer::from_pem_slice(bytes)
            .map_err(|error| format!("no certificate ({error})"))?;
        let key =
            PrivateKeyDer::from_pem_slice(bytes).map_err(|error| format!("no key ({error})"))?;
        let fingerprint = Fingerprint::of(&certificate);
        Ok(Self { certificate, key, fingerprint })
    }

    /// What peers know this machine by.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What a handshake needs.
    pub(crate) fn chain_and_key(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.certificate.clone()], self.key.clone_key())
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

fn make(path: &Path) -> Result<String, KeyError> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new([NAME.to_owned()])?.self_signed(&key)?;
    let text = certificate.pem() + &key.serialize_pem();
    write(path, &text)?;
    Ok(text)
}

/// SHA-256 of a certificate's DER.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of one certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(FingerprintError) };
        let pairs: &[[u8; 2]; 32] = pairs.try_into().map_err(|_| FingerprintError)?;
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or(FingerprintError);
            *byte = (digit(*high)? * 16 + digit(*low)?) as u8;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

/// A text that is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct FingerprintError;

/// The machines this one knows.
#[derive(Debug)]
pub struct Peers {
    folder: PathBuf,
    file: PeersFile,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeersFile {
    #[serde(default)]
    peer: Vec<Peer>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    name: String,
    fingerprint: Fingerprint,
}

impl Peers {
    /// Those that `folder` has kept; none where it has no file.
    pub fn load(folder: &Path) -> Result<Self, KeyError> {
        let path = folder.join(PEERS);
        let text = read(&path, MAX_PEERS_BYTES)?.unwrap_or_default();
        let parsed: Result<PeersFile, _> = toml::from_str(&text);
        let file = parsed.map_err(|error| KeyError::Content { path, why: error.to_string() })?;
        Ok(Self { folder: folder.to_owned(), file })
    }

    /// Whether this machine may talk to us.
    pub fn allows(&self, fingerprint: &Fingerprint) -> bool {
        self.file.peer.iter().any(|peer| peer.fingerprint == *fingerprint)
    }

    /// Who a name stands for: for a head, the worker at that `host:port`.
    pub fn of(&self, name: &str) -> Option<Fingerprint> {
        self.file.peer.iter().find(|peer| peer.name == name).map(|peer| peer.fingerprint)
    }

    /// Every name and what it stands for.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Fingerprint)> {
        self.file.peer.iter().map(|peer| (peer.name.as_str(), peer.fingerprint))
    }

    /// Keeps one more, in the place of another of that name. What other processes have added since
    /// is kept too.
    pub fn add(&mut self, name: &str, fingerprint: Fingerprint) -> Result<(), KeyError> {
        let _lock = lock(&self.folder)?;
        let mut kept = Self::load(&self.folder)?;
        kept.file.peer.retain(|peer| peer.name != name);
        kept.file.peer.push(Peer { name: name.to_owned(), fingerprint });
        kept.save()?;
        *self = kept;
        Ok(())
    }

    fn save(&self) -> Result<(), KeyError> {
        let path = self.folder.join(PEERS);
        match toml::to_string(&self.file) {
            Ok(text) => write(&path, &text),
            Err(error) => Err(KeyError::Content { path, why: error.to_string() }),
        }
    }
}

/// The text of a file, if there is one.
fn read(path: &Path, most_bytes: u64) -> Result<Option<String>, KeyError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|source| KeyError::file(path, source))?,
    };
    let mut text = String::new();
    let read = file.take(most_bytes + 1).read_to_string(&mut text);
    match read.map_err(|source| KeyError::file(path, source))? {
        bytes if bytes as u64 > most_bytes => {
            let why = format!("more than {most_bytes} bytes");
            Err(KeyError::Content { path: path.to_owned(), why })
        }
        _ => Ok(Some(text)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), KeyError> {
    let written = WholeFile::private(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.finish()
    });
    written.map_err(|source| KeyError::file(path, source))
}

/// Held until dropped, against other processes that write in this folder; makes the folder.
fn lock(folder: &Path) -> Result<File, KeyError> {
    let path = folder.join(LOCK);
    let taken = fs::create_dir_all(folder).and_then(|()| {
        let file = File::options().create(true).append(true).open(&path)?;
        match file.lock() {
            // A file system without locks: as without another process.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            locked => locked.map(|()| file),
        }
    });
    taken.map_err(|source| KeyError::file(&path, source))
}

/// Who can read the key can be this machine.
fn check_rights(path: &Path) -> Result<(), KeyError> {
    let found = fs::metadata(path).map_err(|source| KeyError::file(path, source))?;
    match rights::mode(&found) {
        Some(mode) if mode & 0o077 != 0 => Err(KeyError::Exposed { path: path.to_owned(), mode }),
        _ => Ok(()),
    }
}

/// Why keys cannot be used or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "{}: others can read this key (mode {mode:o}); chmod 600, or delete it to get another and \
         pair again",
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("no certificate could be made ({0})")]
    Make(#[from] rcgen::Error),
}

impl KeyError {
    fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Fingerprint = Fingerprint([0xa1; 32]);
    const B: Fingerprint = Fingerprint([0x0b; 32]);

    #[test]
    fn an_identity_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("not/there/yet");
        let made = Identity::load_or_make(&inside).unwrap();
        let again = Identity::load_or_make(&inside).unwrap();
        assert_eq!(made.fingerprint(), again.fingerprint());
        let other = Identity::load_or_make(folder.path()).unwrap();
        assert_ne!(made.fingerprint(), other.fingerprint());
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        Identity::load_or_make(folder.path()).unwrap();
        let path = folder.path().join(IDENTITY);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Identity::load_or_make(folder.path()).unwrap_err();
        assert!(matches!(error, KeyError::Exposed { mode: 0o640, .. }), "{error}");
    }

    #[test]
    fn a_broken_key_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(IDENTITY);
        write(&path, "nothing").unwrap();
        let error = Identity::load_or_make(folder.path()).unwrap_err();
        assert!(error.to_string().contains("no certificate"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "nothing");
    }

    #[test]
    fn peers_are_kept_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut peers = Peers::load(folder.path()).unwrap();
        let mut of_another_process = Peers::load(folder.path()).unwrap();
        peers.add("a:1", A).unwrap();
        of_another_process.add("b:1", A).unwrap();
        peers.add("b:1", B).unwrap();
        for peers in [peers, Peers::load(folder.path()).unwrap()] {
            assert_eq!(
                (peers.of("a:1"), peers.of("b:1"), peers.of("c:1")),
                (Some(A), Some(B), None)
            );
            assert_eq!(peers.iter().count(), 2);
            assert!(peers.allows(&A) && peers.allows(&B) && !peers.allows(&Fingerprint([0; 32])));
        }
    }

    #[test]
    fn files_of_peers_are_read_strictly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PEERS);
        let long = "# ".repeat(1 << 20);
        let short = "[[peer]]\nname = \"a\"\nfingerprint = \"12\"\n";
        for (text, words) in
            [(short, "64 hexadecimal"), ("x = 1", "unknown field"), (&long, "more than")]
        {
            write(&path, text).unwrap();
            let error = Peers::load(folder.path()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(PEERS), "{error}");
        }
    }

    #[test]
    fn fingerprints_are_hexadecimal() {
        assert_eq!(A.to_string(), "a1".repeat(32));
        assert_eq!("0B".repeat(32).parse(), Ok(B));
        for text in ["", "a", "g1", &"a1".repeat(31), &"a1".repeat(33), &"+1".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text}");
        }
    }
}
