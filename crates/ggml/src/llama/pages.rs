//! Large pages for weights that llama.cpp allocates itself. Weights are read from beginning to end
//! for every token, and a page of 4 KiB has to be looked up for each of them: with pages of 2 MiB
//! decoding is faster (docs/decisions/0085). llama.cpp asks for its memory before it reads the
//! first tensor, so there is a moment at which all of it is there and none of it is used.

use crate::layout::stack::prefer_large_pages;
use std::ops::Range;

/// Mappings of at least this size are worth asking.
const LEAST_BYTES: usize = 4 << 20;

/// The anonymous memory of this process at one moment.
#[derive(Debug, Default)]
pub(super) struct Anonymous(Vec<Range<usize>>);

impl Anonymous {
    /// As it is now; empty where the system does not tell.
    pub(super) fn now() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(anonymous).collect())
    }

    /// Asks for large pages in what has been allocated since. Best effort: the system may have none.
    pub(super) fn prefer_large_pages_since(&self) {
        for new in Self::now().0 {
            let known = self.0.iter().any(|old| old.start < new.end && new.start < old.end);
            if !known && new.len() >= LEAST_BYTES {
                let start = std::ptr::with_exposed_provenance_mut(new.start);
                prefer_large_pages(start, new.len());
            }
        }
    }
}

/// A line of `/proc/self/maps`, if it is private memory without a file: address range, rights,
/// offset, device, inode, and no name.
fn anonymous(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (rights, inode) = (fields.next()?, fields.nth(2)?);
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    (rights == "rw-p" && inode == "0" && fields.next().is_none()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_anonymous_memory_are_found() {
        let of = |line| anonymous(line);
        assert_eq!(of("7f00-7f10 rw-p 00000000 00:00 0 "), Some(0x7f00..0x7f10));
        assert_eq!(of("7f00-7f10 rw-p 00000000 00:00 0    [heap]"), None);
        assert_eq!(of("7f00-7f10 r--p 00001000 fd:00 42   /usr/lib/x.so"), None);
        assert_eq!(of("7f00-7f10 rw-p 00001000 fd:00 42"), None);
        assert_eq!(of("nonsense"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn new_memory_is_told_from_old() {
        let before = Anonymous::now();
        assert!(!before.0.is_empty());
        let new = vec![1_u8; 64 << 20];
        let place = new.as_ptr().addr() + (32 << 20);
        let holds = |memory: &Anonymous| memory.0.iter().any(|range| range.contains(&place));
        assert!(!holds(&before) && holds(&Anonymous::now()));
        before.prefer_large_pages_since();
        assert!(new.iter().all(|byte| *byte == 1));
    }
}
