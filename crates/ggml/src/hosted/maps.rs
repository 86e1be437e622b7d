//! Which file lies at an address of this process, from `/proc/self/maps`. Touches no byte of it.

use crate::system::memory;
use std::path::PathBuf;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: usize,
    /// First address behind it.
    pub end: usize,
    pub writable: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file; `None` for memory of the process's own.
    pub file: Option<PathBuf>,
}

impl Mapping {
    /// Whether `len` bytes from `address` on lie in it.
    pub fn holds(&self, address: usize, len: usize) -> bool {
        self.start <= address && address.checked_add(len).is_some_and(|end| end <= self.end)
    }
}

/// All mappings of this process; none where the system does not tell.
pub fn read() -> Vec<Mapping> {
    let text = std::fs::read("/proc/self/maps").unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(parse).collect()
}

/// `7f00-7f10 r--s 00001000 08:01 1234    /models/a.gguf`
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (_device, rest) = rest.split_once(' ')?;
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let hex = |text: &str| usize::from_str_radix(text, 16).ok();
    let path = path.trim_start();
    let is_file = inode != "0" && path.starts_with('/');
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        writable: rights.as_bytes().get(1) == Some(&b'w'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        file: is_file.then(|| PathBuf::from(path)),
    })
}

/// What the system is told about bytes of a mapping. Changes no content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// They are wanted soon: it begins to read them.
    Soon,
    /// They are read as any others, with what lies behind them.
    Normal,
}

/// Tells it about the bytes from `start` to `end`, to whole pages; it may do nothing.
pub fn advise(start: usize, end: usize, advice: Advice) {
    let start = start - start % memory::page_bytes();
    let Some(length) = end.checked_sub(start) else { return };
    let start = std::ptr::with_exposed_provenance_mut(start);
    match advice {
        Advice::Soon => memory::advise_soon(start, length),
        Advice::Normal => memory::advise_normal(start, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_mapping() {
        let file = parse("7f00-7f10 r--s 00001000 08:01 1234                 /a b/c.gguf").unwrap();
        assert_eq!((file.start, file.end, file.offset), (0x7f00, 0x7f10, 0x1000));
        assert_eq!(file.file.as_deref(), Some(std::path::Path::new("/a b/c.gguf")));
        assert!(file.holds(0x7f00, 16) && !file.holds(0x7f00, 17) && !file.holds(0x7eff, 1));
        assert!(!file.writable && !file.holds(0x7f01, usize::MAX));
        let heap =
            parse("5500-5600 rw-p 00000000 00:00 0                          [heap]").unwrap();
        assert_eq!((heap.file, heap.writable), (None, true));
        assert_eq!(parse("7f00-7f10 r--s 0 0:0 0").unwrap().file, None);
        for wrong in ["", "7f00", "x-y r--p 0 0:0 0", "7f00-7f10 r--s zz 08:01 1 /a"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_process_has_mappings() {
        let here = std::ptr::from_ref(&parse).addr();
        let maps = read();
        assert!(maps.iter().any(|mapping| mapping.file.is_some()));
        assert!(maps.iter().all(|mapping| mapping.start < mapping.end), "{here:x}");
    }
}
