//! One key for all: from a flag, a variable or a file. One that is given and cannot protect
//! anything is an error: a server that its owner believes locked must not be open.

use crate::terminal::note;
use anyhow::{Context, Result, bail, ensure};
use motley_trace::rights;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a key file that are read.
const FILE_BYTES_MAX: u64 = 4096;

/// The first line of a file, trimmed.
pub(super) fn of_file(path: &Path) -> Result<String> {
    let shown = path.display();
    let cannot = || format!("cannot read the key in {shown} (--api-key-file)");
    let file = File::open(path).with_context(cannot)?;
    warn_if_others_read(path, &file);
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(cannot)?;
    let line = text.lines().next().unwrap_or_default();
    checked(line.trim(), &format!("--api-key-file: the first line of {shown}"))
}

pub(super) fn checked(key: &str, from: &str) -> Result<String> {
    if key.is_empty() {
        bail!(
            "{from} is empty, and an empty key would let everybody in; give a key, or leave it \
             away to serve without one"
        );
    }
    let sendable = key.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    ensure!(sendable, "{from} has spaces or control characters, which no client can send");
    Ok(key.to_owned())
}

pub(super) fn warn_if_others_read(path: &Path, file: &File) {
    /// Everybody may read.
    const OTHERS_READ: u32 = 0o004;
    let mode = file.metadata().ok().as_ref().and_then(rights::mode);
    if mode.is_some_and(|mode| mode & OTHERS_READ != 0) {
        let path = path.display();
        note(&format!("every user of this machine can read the key in {path}; chmod 600 helps"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &[u8]) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, text).unwrap();
        of_file(&path)
    }

    #[test]
    fn the_first_line_is_the_key() {
        assert_eq!(of_text(b" sesame \r\nnotes").unwrap(), "sesame");
        for bad in [&b""[..], b"\nsesame", b"  \n", b"two words", b"\xff\xfe"] {
            let error = format!("{:#}", of_text(bad).unwrap_err());
            assert!(error.contains("--api-key-file"), "{error}");
        }
        assert!(of_file(Path::new("no/such/key")).unwrap_err().to_string().contains("no/such/key"));
    }
}
