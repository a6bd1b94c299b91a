//! CLOCK_MONOTONIC, the clock that the parent names times on.

use std::time::Duration;

/// Seconds.
pub fn now() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec to write to; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds as whole nanoseconds, to compare and sort by.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}

/// Returns at that time or at once when it has passed.
pub fn sleep_until(at: f64) {
    let left_s = at - now();
    if left_s > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(left_s));
    }
}
