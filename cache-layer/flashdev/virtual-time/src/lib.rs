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

/// How many real seconds one second of the device lasts.
///
/// The device itself always runs in its own, unscaled time; only the clock that drives it is
/// slowed down. So a scaled run is the same run, event for event, and every modelled latency and
/// bandwidth is off by exactly this factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeScale(f64);

impl TimeScale {
    /// Real time as it is.
    pub const ONE: TimeScale = TimeScale(1.0);

    /// A scale from a factor, or a sentence that says what is wrong with it.
    pub fn new(factor: f64) -> Result<TimeScale, String> {
        if (0.001..=1000.0).contains(&factor) {
            Ok(TimeScale(factor))
        } else {
            Err(format!(
                "time scale {factor} is out of range: give a factor of 0.001 to 1000 (1 = real time, 5 = five times slower)"
            ))
        }
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Device time that has passed after this much real time.
    pub fn to_device(self, real_nanos: u64) -> Nanos {
        if self == TimeScale::ONE {
            return real_nanos;
        }
        (real_nanos as f64 / self.0) as Nanos
    }

    /// Real time at which a point of device time is reached; rounded up, so never too early.
    pub fn to_real(self, device: Nanos) -> u64 {
        if self == TimeScale::ONE {
            return device;
        }
        (device as f64 * self.0).ceil() as u64
    }
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
    use proptest::prelude::*;

    #[test]
    fn units_convert() {
        assert_eq!(nanos_from_ms(0.2), 200_000);
        assert_eq!(nanos_from_us(0.2), 200);
        assert_eq!(nanos_per_byte(100.0), 10.0);
    }

    #[test]
    fn a_bad_factor_is_named_with_a_remedy() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            let error = TimeScale::new(factor).unwrap_err();
            assert!(error.contains("0.001 to 1000"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_deadline_is_never_early(device in 0..1u64 << 50, factor in 0.01..100.0f64) {
            let scale = TimeScale::new(factor).unwrap();
            // The real clock at the deadline must show the device time, to the nanosecond that
            // the rounding of a double allows.
            prop_assert!(scale.to_device(scale.to_real(device)) + 1 >= device);
        }
    }
}
