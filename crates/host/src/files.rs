//! Bounded reads of the small text files of `/proc` and `/sys`. Knows no file by name.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// Longest file read; `/proc/mountinfo` of a busy server stays far below.
const MAX_BYTES: u64 = 4 << 20;

/// The text of `path` below `root`; `None` when it is absent, unreadable or not text.
pub(crate) fn text(root: &Path, path: &str) -> Option<String> {
    read(&root.join(path.trim_start_matches('/')))
}

/// The text of one file.
pub(crate) fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// A file that holds one value.
pub(crate) fn value<T: FromStr>(path: &Path) -> Option<T> {
    read(path)?.trim().parse().ok()
}

/// A file that holds one number of four bytes, as the device tree has them.
pub(crate) fn big_endian(path: &Path) -> Option<u32> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The number behind `key` in lines of `key number` or `key: number unit`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        (name.strip_suffix(':').unwrap_or(name) == key).then(|| words.next()?.parse().ok())?
    })
}

/// The same where the unit is kB, in bytes.
pub(crate) fn keyed_kb(text: &str, key: &str) -> Option<u64> {
    keyed(text, key)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_whole_words() {
        let text = "MemTotal:  24 kB\nMem 3\nbad x\nfile 7\nfile_mapped 8\n";
        assert_eq!(keyed_kb(text, "MemTotal"), Some(24 << 10));
        assert_eq!(keyed(text, "Mem"), Some(3));
        assert_eq!(keyed(text, "bad"), None);
        assert_eq!(keyed(text, "file_mapped"), Some(8));
        assert_eq!(keyed(text, "absent"), None);
    }
}
