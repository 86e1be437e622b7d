//! Sizes and times as people write them.

use std::time::Duration;

/// `4G`, `512M`, `1.5GiB`, or bytes; units are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(format!("unknown unit `{unit}`; write 512M or 4G")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a size; write 4G"))?;
    Ok((number * (1_u64 << shift) as f64) as u64)
}

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

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("512m"), Ok(512 << 20));
        assert_eq!(parse_size("1000"), Ok(1000));
        assert!(parse_size("four").is_err());
        assert!(parse_size("4X").is_err());
    }
}
