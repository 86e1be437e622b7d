//! Formats of strings as patterns that are enforced. Narrower than the standards where a
//! regular expression cannot say all of them, never wider. A format that is not here is refused.

/// Formats there are, for messages.
pub(super) const FORMATS: &str =
    "date, time, date-time, duration, email, hostname, ipv4, ipv6, uri, uuid";

/// Every day of the calendar: 31, 30 and 28 days, and 29 February in leap years.
const DATE: &str = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
    |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
    |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29)";
/// RFC 3339 without leap seconds, which are right on a few days only.
const TIME: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?\
    (?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
/// ISO 8601, as RFC 3339's appendix has it.
const DURATION: &str = "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?\
    |[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)(?:T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?\
    |[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))?|T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?\
    |[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))";
/// One label without two hyphens in a row, which would be read as an encoded one.
const LABEL: &str = "[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20}){0,2}";
const OCTET: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const GROUP: &str = "[0-9a-fA-F]{1,4}";
/// Unreserved characters, sub-delimiters and escapes of RFC 3986.
const URI_CHAR: &str = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";

/// The regular expression of a format, in Rust's syntax, anchored.
pub(super) fn pattern(format: &str) -> Option<String> {
    let host = || format!("{LABEL}(?:\\.{LABEL}){{0,3}}");
    let inner = match format {
        "date" => DATE.to_owned(),
        "time" => TIME.to_owned(),
        "date-time" => format!("{DATE}T{TIME}"),
        "duration" => DURATION.to_owned(),
        "email" => {
            let atom = "[A-Za-z0-9_+-]{1,20}";
            format!("{atom}(?:\\.{atom}){{0,2}}@{}", host())
        }
        "hostname" => host(),
        "ipv4" => format!("{OCTET}(?:\\.{OCTET}){{3}}"),
        "ipv6" => ipv6(),
        "uri" => format!(
            "[A-Za-z][A-Za-z0-9+.-]{{0,15}}://{}(?::[0-9]{{1,4}})?(?:/{URI_CHAR}*)*\
             (?:\\?(?:{URI_CHAR}|[/?])*)?(?:#(?:{URI_CHAR}|[/?])*)?",
            host()
        ),
        "uuid" => "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}".to_owned(),
        _ => return None,
    };
    Some(format!("^(?:{inner})$"))
}

/// Eight groups, or fewer with `::` in place of the rest.
fn ipv6() -> String {
    let mut forms = vec![format!("(?:{GROUP}:){{7}}{GROUP}"), "::".to_owned()];
    for before in 0..7_usize {
        let after = 7 - before;
        let left = match before {
            0 => String::new(),
            _ => format!("{GROUP}(?::{GROUP}){{0,{}}}", before - 1),
        };
        forms.push(format!("{left}::{GROUP}(?::{GROUP}){{0,{}}}", after - 1));
    }
    forms.push(format!("{GROUP}(?::{GROUP}){{0,6}}::"));
    format!("(?:{})", forms.join("|"))
}
