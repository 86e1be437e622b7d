//! Lines for people, on the host's standard error.

/// One line, marked as ours. A host that closed its standard error hears nothing.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "motley: {line}");
}
