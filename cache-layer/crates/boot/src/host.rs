//! Which computer this is: as `disk/identity/owner.py`.

use std::fs;

use crate::media::digest;

const SOURCES: [&str; 2] = ["/etc/hotset/host-id", "/etc/machine-id"];
const SALT: &str = "hotset flash owner";

/// Its id, as labels have it; None where it has none.
pub fn id() -> Option<String> {
    let texts = SOURCES
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let text = texts
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty() && text != "uninitialized")?;
    Some(derived(&text))
}

/// By what the firmware tells it from a clone; empty where it does not.
pub fn hardware() -> String {
    hardware_of(&fs::read_to_string("/sys/class/dmi/id/product_uuid").unwrap_or_default())
}

fn hardware_of(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_uuid = lengths == [8, 4, 4, 4, 12]
        && text
            .chars()
            .all(|sign| sign == '-' || sign.is_ascii_hexdigit());
    let all = |digit| text.chars().all(|sign| sign == '-' || sign == digit);
    if !is_uuid || all('0') || all('f') || text == "03000200-0400-0500-0006-000700080009" {
        return String::new();
    }
    derived(&text)
}

fn derived(text: &str) -> String {
    digest([format!("{SALT} {text}").as_bytes()])[..32].to_owned()
}

/// Its key for persistent reservations: 64 bits. Without the hardware: that of its clones, too, and of earlier
/// versions.
pub fn reservation_key(id: &str, hardware: &str) -> String {
    let bits = |text: &str| u64::from_str_radix(text.get(..16).unwrap_or("0"), 16).unwrap_or(0);
    format!("{:#x}", bits(id) ^ bits(hardware))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `tests/disk/test_reservation.py` has them.
    #[test]
    fn clones_have_different_keys_where_the_firmware_tells_them_apart() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(reservation_key(id, ""), "0x123456789abcdef");
        assert_eq!(
            reservation_key(id, "8000000000000001ff"),
            "0x8123456789abcdee"
        );
    }

    #[test]
    fn firmware_that_was_never_told_a_uuid_says_nothing() {
        for text in ["", "Not Settable", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(hardware_of(text), "", "{text}");
        }
        let id = hardware_of("4C4C4544-0044-4A10-8054-B7C04F4D3732\n");
        assert_eq!(id, derived("4c4c4544-0044-4a10-8054-b7c04f4d3732"));
    }
}
