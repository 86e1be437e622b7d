//! What a rule answers: one place in one file, and what is wrong there.

use std::fmt;

/// One broken rule, at the place where a person would mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path from the workspace root, with `/`.
    pub path: String,
    /// Line from 1, or 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about one line (from 1).
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    /// A finding about a file as a whole.
    pub fn file(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_like_compiler_messages() {
        assert_eq!(Finding::at("a.rs", 3, "why").to_string(), "a.rs:3: why");
        assert_eq!(Finding::file("a.rs", "why").to_string(), "a.rs: why");
    }
}
