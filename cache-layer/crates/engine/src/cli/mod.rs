//! Arguments that the engine's program and the lab's have in common.

pub mod output;
pub mod salvage;
pub mod tier;

/// Reads bytes, optionally with a suffix for a power of 1024.
///
/// # Errors
/// It is no such number: what to give.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("iB").unwrap_or(text);
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "give bytes, or a number with K, M, G or T, such as 2G".to_owned())
}

/// Reads a span of time, seconds.
///
/// # Errors
/// It is none, or too long or short: what to give.
pub fn parse_duration(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("give 0.1 to 1000000 seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("1000"), Ok(1000));
        for bad in ["", "G", "2GB", "-1", "99999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
