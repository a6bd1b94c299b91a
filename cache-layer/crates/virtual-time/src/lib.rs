//! Virtual time: nanoseconds since the device was switched on.

/// A point or a span of device time, in nanoseconds. 64 bits last for 584 years.
pub type Nanos = u64;

/// One microsecond in nanoseconds.
pub const NANOS_PER_US: f64 = 1e3;

/// One millisecond in nanoseconds.
pub const NANOS_PER_MS: f64 = 1e6;

/// One second in nanoseconds.
pub const NANOS_PER_S: f64 = 1e9;

/// Converts milliseconds, as models and data sheets give them, to device time.
pub fn nanos_from_ms(ms: f64) -> Nanos {
    (ms * NANOS_PER_MS).round() as Nanos
}

/// Converts microseconds, as models and data sheets of flash give them, to device time.
pub fn nanos_from_us(us: f64) -> Nanos {
    (us * NANOS_PER_US).round() as Nanos
}

/// Nanoseconds that one byte takes at a rate in MB/s (MB = 10^6 bytes, as on data sheets).
pub fn nanos_per_byte(mb_per_s: f64) -> f64 {
    1e3 / mb_per_s
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
pub fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert() {
        assert_eq!(nanos_from_ms(0.2), 200_000);
        assert_eq!(nanos_from_us(0.2), 200);
        assert_eq!(nanos_per_byte(100.0), 10.0);
    }
}
