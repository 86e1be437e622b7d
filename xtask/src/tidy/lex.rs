//! Rust source with comments and literals blanked, so that a rule on code sees only code.
//!
//! Not a parser: it knows line and nested block comments, plain, byte and raw strings and
//! character literals. Newlines stay, so line numbers hold.

/// `source` with every character of comments and literals replaced by a space.
pub(super) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_or_comment_end(bytes, at);
        match end {
            Some(end) => {
                blank(&mut out[at..end]);
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8(out).expect("blanking replaces whole characters")
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
}

/// Where the comment or literal that begins at `at` ends; none if code begins there.
fn literal_or_comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment_length(rest),
        [b'"', ..] => string_length(rest),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string_length(rest)?,
        [b'b', b'r', b'"' | b'#', ..] if !in_word => 1 + raw_string_length(&rest[1..])?,
        [b'\'', ..] => char_length(rest)?,
        _ => return None,
    };
    Some(at + length)
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of `r"…"` or `r#"…"#`; none for a raw identifier such as `r#type`.
fn raw_string_length(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    let open = 1 + hashes;
    (rest.get(open) == Some(&b'"')).then_some(())?;
    let close = [&[b'"'][..], &vec![b'#'; hashes]].concat();
    let body = &rest[open + 1..];
    let end = body.windows(close.len()).position(|w| w == close);
    Some(end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

/// Length of a character literal; none for a lifetime.
fn char_length(rest: &[u8]) -> Option<usize> {
    const LONGEST: usize = "'\\u{10ffff}'".len();
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).take(LONGEST).position(|b| *b == b'\'')?;
        return Some(3 + close + 1);
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(5)]);
    let first = match text {
        Ok(text) => text.chars().next(),
        Err(error) => std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).ok()?.chars().next(),
    };
    let width = first?.len_utf8();
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

#[cfg(test)]
mod tests {
    use super::code_only;

    fn check(source: &str, code: &str) {
        let squeezed: Vec<&str> = code.split_whitespace().collect();
        let found = code_only(source);
        assert_eq!(found.split_whitespace().collect::<Vec<_>>(), squeezed, "{source}");
        assert_eq!(found.lines().count(), source.lines().count(), "{source}");
    }

    #[test]
    fn blanks_what_is_not_code() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check(r#"f("x \" y", z)"#, "f( , z)");
        check("g(r#\"x \" y\"#, br\"q\")", "g( , )");
        check("let c = '\"'; d", "let c = ; d");
        check("let c = '\\''; d('é', '\\u{1f600}')", "let c = ; d( , )");
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
        check("r#type = 1", "r#type = 1");
        check("\"open\nstill", "");
    }
}
