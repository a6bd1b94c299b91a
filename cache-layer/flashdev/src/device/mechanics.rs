//! Where the head is and how long it takes to get elsewhere: seek curve, rotation, media rate.

use crate::time::{Nanos, nanos_from_ms, nanos_per_byte};

/// What the mechanics of one disk are built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsSpec {
    /// Spindle speed, turns per minute.
    pub rpm: u32,
    /// Size of the disk, bytes.
    pub capacity_bytes: u64,
    /// Seek to the next track, milliseconds.
    pub seek_ms_track_to_track: f64,
    /// Mean seek between two random places of the whole disk, milliseconds.
    pub seek_ms_average: f64,
    /// Seek across the whole disk, milliseconds; `None` leaves it to the square-root curve.
    pub seek_ms_full: Option<f64>,
    /// Sustained rate of a long run, head and track switches included, MB/s.
    pub media_mb_per_s: f64,
    /// Seek distances are multiplied by this (placement "spread"); 1 = as stored.
    pub stretch: f64,
    /// Where in its turn the platter is at time zero, 0 to 1. Spindles of an array are not
    /// synchronised, so each disk has another one.
    pub phase: f64,
}

/// Mean of sqrt(|x - y|) for x, y uniform on 0..1: the share of the square-root term in the
/// average seek.
const MEAN_ROOT_DISTANCE: f64 = 8.0 / 15.0;

/// Mean of |x - y| for x, y uniform on 0..1.
const MEAN_DISTANCE: f64 = 1.0 / 3.0;

/// A platter that lags its target by less than this has met it: events are rounded to whole
/// nanoseconds, and without slack a run that continues exactly where it ended would wait a full
/// turn for one nanosecond lost. 2 µs are 300 bytes at 150 MB/s, less than one sector.
const ROTATION_SLACK_NS: f64 = 2_000.0;

/// The moving parts of one disk.
///
/// The surface is one long spiral of constant density: byte `x` passes the head at the phase
/// `x / rate` of the turn. Track skew exists so that a run goes on across tracks without losing a
/// turn, and the sustained rate of the data sheet has the switches in it, so neither is modelled
/// apart. Zones (outer tracks faster than inner ones) are averaged.
#[derive(Clone, Debug)]
pub struct Mechanics {
    turn_ns: f64,
    ns_per_byte: f64,
    phase_ns: f64,
    track_bytes: f64,
    capacity_bytes: f64,
    stretch: f64,
    seek_ns_least: f64,
    seek_ns_root: f64,
    seek_ns_linear: f64,
}

impl Mechanics {
    /// Mechanics from checked values.
    pub fn new(spec: &MechanicsSpec) -> Mechanics {
        let turn_ns = 60e9 / f64::from(spec.rpm);
        let ns_per_byte = nanos_per_byte(spec.media_mb_per_s);
        let (root_ms, linear_ms) = seek_curve_ms(spec);
        Mechanics {
            turn_ns,
            ns_per_byte,
            phase_ns: spec.phase * turn_ns,
            track_bytes: turn_ns / ns_per_byte,
            capacity_bytes: spec.capacity_bytes as f64,
            stretch: spec.stretch,
            seek_ns_least: nanos_from_ms(spec.seek_ms_track_to_track) as f64,
            seek_ns_root: root_ms * 1e6,
            seek_ns_linear: linear_ms * 1e6,
        }
    }

    /// Time until the medium starts to pass under the head at `target`, for a head at `from`:
    /// the seek, then the wait for the sector to come round.
    pub fn positioning_ns(&self, now: Nanos, from: u64, target: u64) -> Nanos {
        let seek_ns = self.seek_ns(from, target);
        let arrival_ns = now as f64 + seek_ns;
        (seek_ns + self.rotation_ns(arrival_ns, target)).round() as Nanos
    }

    /// Time that `bytes` take to pass under the head.
    pub fn transfer_ns(&self, bytes: u64) -> Nanos {
        (bytes as f64 * self.ns_per_byte).round() as Nanos
    }

    /// Bytes that passed under the head in a span of time.
    pub fn bytes_passed(&self, span: Nanos) -> u64 {
        (span as f64 / self.ns_per_byte) as u64
    }

    /// Longest time any positioning can take: a seek across the whole disk and one turn.
    pub fn positioning_ns_max(&self) -> Nanos {
        (self.seek_ns_least + self.seek_ns_root + self.seek_ns_linear + self.turn_ns).ceil()
            as Nanos
    }

    /// Nothing within the same track, else the curve over the (stretched) distance.
    ///
    /// The track test uses the distance as stored: what lies side by side in the file counts as
    /// contiguous however far a small file is spread.
    fn seek_ns(&self, from: u64, target: u64) -> f64 {
        let stored = from.abs_diff(target) as f64;
        if stored < self.track_bytes {
            return 0.0;
        }
        let share = (stored * self.stretch / self.capacity_bytes).min(1.0);
        self.seek_ns_least + self.seek_ns_root * share.sqrt() + self.seek_ns_linear * share
    }

    fn rotation_ns(&self, arrival_ns: f64, target: u64) -> f64 {
        let target_ns = target as f64 * self.ns_per_byte + self.phase_ns;
        let wait = (target_ns - arrival_ns).rem_euclid(self.turn_ns);
        if self.turn_ns - wait < ROTATION_SLACK_NS {
            return 0.0;
        }
        wait
    }
}

/// The factors of the root and the linear term of `seek = least + root * sqrt(d) + linear * d`,
/// d = distance as a share of the disk, from the three points of a data sheet.
///
/// Without a full-stroke figure the linear term is nil and the curve is the plain square root of
/// an arm that accelerates half of the way and brakes the other half.
pub(crate) fn seek_curve_ms(spec: &MechanicsSpec) -> (f64, f64) {
    let average_ms = spec.seek_ms_average - spec.seek_ms_track_to_track;
    match spec.seek_ms_full {
        None => (average_ms / MEAN_ROOT_DISTANCE, 0.0),
        Some(full_ms) => {
            let full_ms = full_ms - spec.seek_ms_track_to_track;
            let root_ms =
                (average_ms - full_ms * MEAN_DISTANCE) / (MEAN_ROOT_DISTANCE - MEAN_DISTANCE);
            (root_ms, full_ms - root_ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> MechanicsSpec {
        MechanicsSpec {
            rpm: 7200,
            capacity_bytes: 1_000_000_000_000,
            seek_ms_track_to_track: 0.8,
            seek_ms_average: 7.7,
            seek_ms_full: None,
            media_mb_per_s: 150.0,
            stretch: 1.0,
            phase: 0.0,
        }
    }

    fn average_seek_ms(mechanics: &Mechanics) -> f64 {
        const STEPS: u64 = 400;
        let step = 1_000_000_000_000 / STEPS;
        let total: f64 = (0..STEPS * STEPS)
            .map(|i| mechanics.seek_ns(i / STEPS * step, i % STEPS * step))
            .sum();
        total / (STEPS * STEPS) as f64 / 1e6
    }

    #[test]
    fn the_average_seek_is_the_data_sheets() {
        let plain = Mechanics::new(&spec());
        assert!((average_seek_ms(&plain) - 7.7).abs() < 0.05);
        let three_points = Mechanics::new(&MechanicsSpec {
            seek_ms_full: Some(16.0),
            ..spec()
        });
        assert!((average_seek_ms(&three_points) - 7.7).abs() < 0.05);
        let full_ms = three_points.seek_ns(0, 1_000_000_000_000) / 1e6;
        assert!((full_ms - 16.0).abs() < 0.001, "{full_ms}");
    }

    #[test]
    fn a_sector_just_missed_costs_a_turn() {
        let mechanics = Mechanics::new(&spec());
        let just_missed = mechanics.positioning_ns(10_000, 0, 0);
        assert_eq!(just_missed, 8_333_333 - 10_000);
        assert_eq!(mechanics.positioning_ns(1_000, 0, 0), 0, "within the slack");
    }

    #[test]
    fn a_run_goes_on_without_waiting() {
        let mechanics = Mechanics::new(&spec());
        let mut now = 0;
        let mut head = 0;
        for len in [4096, 65536, 1 << 20, 8192, 1 << 26] {
            let wait = mechanics.positioning_ns(now, head, head);
            assert!(wait < 10, "waited {wait} ns at byte {head}");
            now += wait + mechanics.transfer_ns(len);
            head += len;
        }
    }

    #[test]
    fn a_stretched_file_is_sought_like_the_full_disk() {
        let full = Mechanics::new(&spec());
        let small = Mechanics::new(&MechanicsSpec {
            stretch: 1000.0,
            ..spec()
        });
        let far = full.seek_ns(0, 500_000_000_000);
        assert_eq!(far, small.seek_ns(0, 500_000_000));
        assert_eq!(small.seek_ns(0, 65_536), 0.0, "contiguous stays contiguous");
    }

    #[test]
    fn no_positioning_exceeds_the_longest() {
        let mechanics = Mechanics::new(&spec());
        for now in (0..10_000_000).step_by(99_991) {
            let took = mechanics.positioning_ns(now, 0, 999_999_990_000);
            assert!(took <= mechanics.positioning_ns_max());
        }
    }
}
