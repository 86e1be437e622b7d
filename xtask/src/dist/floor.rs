//! How old a system may be that runs a file: the newest versions of symbols it asks of glibc,
//! libstdc++ and the C++ runtime, read by `objdump`.

use super::processor::Processor;
use super::sysroot::{CXXABI, GLIBC, GLIBCXX};
use super::tools::output;
use anyhow::{Result, ensure};
use serde::Serialize;
use std::path::Path;

/// Newest versions a file asks for; empty where it asks for none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Floor {
    pub glibc: String,
    pub glibcxx: String,
    pub cxxabi: String,
}

impl Floor {
    /// Of the program or library at `path`, which is for `processor`.
    pub fn of(path: &Path, processor: &Processor) -> Result<Self> {
        Ok(Self::read(&output(processor.gnu_program("objdump").arg("-T").arg(path))?))
    }

    /// From what `objdump -T` prints: `… GLIBC_2.14  memcpy`, or in parentheses.
    fn read(symbols: &str) -> Self {
        let newest = |prefix: &str| {
            let words = symbols.split([' ', '\t', '\n', '(', ')']);
            let versions = words.filter_map(|word| word.strip_prefix(prefix));
            let versions = versions.filter(|version| numbers(version).is_some());
            versions.max_by_key(|version| numbers(version)).unwrap_or_default().to_owned()
        };
        Self { glibc: newest("GLIBC_"), glibcxx: newest("GLIBCXX_"), cxxabi: newest("CXXABI_") }
    }

    /// The newer of both, version by version.
    #[must_use]
    pub fn or_newer(self, other: Self) -> Self {
        let newer = |a: String, b: String| if numbers(&a) >= numbers(&b) { a } else { b };
        Self {
            glibc: newer(self.glibc, other.glibc),
            glibcxx: newer(self.glibcxx, other.glibcxx),
            cxxabi: newer(self.cxxabi, other.cxxabi),
        }
    }

    /// An error when the system that is linked with has something older.
    pub fn check(&self, name: &str) -> Result<()> {
        let asked = [(&self.glibc, GLIBC), (&self.glibcxx, GLIBCXX), (&self.cxxabi, CXXABI)];
        for ((asked, most), library) in asked.into_iter().zip(["GLIBC", "GLIBCXX", "CXXABI"]) {
            ensure!(numbers(asked) <= numbers(most), "{name} asks for {library}_{asked}");
        }
        Ok(())
    }
}

/// `2.31` as numbers that compare; `None` for what is no version (`PRIVATE`, and nothing).
fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
0000 DF *UND* 0000 (GLIBC_2.2.5) memcmp
0000 DF *UND* 0000  GLIBC_2.14  memcpy
0000 DF *UND* 0000 (GLIBC_PRIVATE) __libc_x
0000 DF *UND* 0000  GLIBCXX_3.4.9 _ZNSo9_M_insertIPKvEERSoT_
0000 DF *UND* 0000  GLIBCXX_3.4.21 _ZNSt7
0000 DF *UND* 0000  CXXABI_1.3  __gxx_personality_v0
";

    #[test]
    fn versions_compare_as_numbers() {
        let floor = Floor::read(SYMBOLS);
        let expected =
            Floor { glibc: "2.14".into(), glibcxx: "3.4.21".into(), cxxabi: "1.3".into() };
        assert_eq!(floor, expected);
        floor.check("a").unwrap();
    }

    #[test]
    fn what_is_newer_than_the_oldest_system_is_refused_by_name() {
        let newer = Floor::read("GLIBC_2.34 pthread_create");
        let error = newer.clone().or_newer(Floor::read(SYMBOLS)).check("libx.so").unwrap_err();
        assert_eq!(error.to_string(), "libx.so asks for GLIBC_2.34");
        assert_eq!(Floor::default().or_newer(newer.clone()), newer);
    }
}
