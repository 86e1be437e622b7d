//! What of a text decides the stack and the time llama.cpp's pre-tokenizers take for it. Pure
//! functions of a text; the bounds on them are in `tokenize`.

/// Characters of the longest stretch without a place that no pre-tokenizer's match goes across.
///
/// `std::regex` recurses once per matched character. No expression of llama.cpp's matches white
/// space and something behind it, but for one blank before a word, words with single blanks
/// between them (`exaone-moe`) and a slash after line ends (`gpt-4o`). So a match ends where a
/// visible character other than a slash follows a line end or two blanks, at the latest.
pub(super) fn longest_stretch(text: &str) -> usize {
    let (mut longest, mut stretch) = (0, 0);
    let (mut before, mut last) = ('a', 'a');
    for next in text.chars() {
        let after_space = last == '\n' || (is_blank(last) && is_blank(before));
        if after_space && next.is_ascii_graphic() && next != '/' {
            stretch = 0;
        }
        stretch += 1;
        longest = longest.max(stretch);
        (before, last) = (last, next);
    }
    longest
}

/// The sum of the squares of the lengths of the runs of characters of one class: the steps of an
/// expression that begins anew at each character of a run and looks at all of it.
pub(super) fn squared_runs(text: &str, is_class: impl Fn(char) -> bool) -> u64 {
    let (mut sum, mut run) = (0_u64, 0_u64);
    for next in text.chars() {
        if is_class(next) {
            run += 1;
            // The difference of two squares: n² is the sum of the first n odd numbers.
            sum = sum.saturating_add(2 * run - 1);
        } else {
            run = 0;
        }
    }
    sum
}

/// Whether a blank stands beside other white space.
pub(super) fn has_wide_space(text: &str) -> bool {
    let mut last = 'a';
    text.chars().any(|next| {
        let wide = next.is_whitespace() && last.is_whitespace() && (next == ' ' || last == ' ');
        last = next;
        wide
    })
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_where_no_match_goes_on() {
        assert_eq!(longest_stretch(""), 0);
        assert_eq!(longest_stretch("one two three"), 13);
        assert_eq!(longest_stretch("one two\nthree"), 8);
        assert_eq!(longest_stretch("if x:\n    return 中文"), 10);
        assert_eq!(longest_stretch("==\n/=="), 6);
        assert_eq!(longest_stretch("\u{a0}\u{a0}x"), 3);
    }

    #[test]
    fn runs_count_by_their_squares() {
        assert_eq!(squared_runs("12 345x6", |c| c.is_ascii_digit()), 4 + 9 + 1);
        assert_eq!(squared_runs("", char::is_whitespace), 0);
    }

    #[test]
    fn wide_space_has_a_blank_in_it() {
        assert!(has_wide_space("a  b"));
        assert!(has_wide_space("a \nb"));
        assert!(!has_wide_space("a b\n\nc"));
    }
}
