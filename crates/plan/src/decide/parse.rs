//! Wishes as people write them, in flags and in variables.

use super::asked::{DevicesAsked, NamedDevice};

/// `4G`, `512M`, `1.5GiB`, or bytes; units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
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

/// `auto`, `cpu`, or names with commas between, each `NAME` or `NAME=SIZE`.
pub fn parse_devices(text: &str) -> Result<DevicesAsked, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "auto" => return Ok(DevicesAsked::Auto),
        "cpu" => return Ok(DevicesAsked::Cpu),
        _ => {}
    }
    let named = |part: &str| {
        let Some((name, size)) = part.split_once('=') else {
            return Ok(NamedDevice { name: part.trim().to_owned(), most_bytes: None });
        };
        Ok(NamedDevice { name: name.trim().to_owned(), most_bytes: Some(parse_size(size)?) })
    };
    text.split(',').map(named).collect::<Result<_, String>>().map(DevicesAsked::Named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_size("512m"), Ok(512 << 20));
        assert_eq!(parse_size("1000"), Ok(1000));
        assert!(parse_size("four").is_err());
        assert!(parse_size("4X").is_err());
    }

    #[test]
    fn a_size_follows_the_name() {
        assert_eq!(parse_devices("auto"), Ok(DevicesAsked::Auto));
        assert_eq!(parse_devices("CPU"), Ok(DevicesAsked::Cpu));
        let named = |name: &str, most_bytes| NamedDevice { name: name.into(), most_bytes };
        let both = vec![named("vulkan0", Some(200 << 20)), named("vulkan1", None)];
        assert_eq!(parse_devices("vulkan0=200M, vulkan1"), Ok(DevicesAsked::Named(both)));
        assert!(parse_devices("vulkan0=much").is_err());
    }
}
