//! Times as people write them.

use std::time::Duration;

/// `10m`, `90s`, `1h30m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is not a time; write 10m or 90s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("1h30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["soon", "10", "", "-1m"] {
            assert!(parse_time(wrong).unwrap_err().contains("write 10m"), "{wrong}");
        }
    }
}
