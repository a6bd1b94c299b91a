//! Where the head is and how long it takes to get elsewhere: seek curve, rotation, media rate.

use virtual_time::{Nanos, nanos_from_ms, nanos_per_byte};

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
    /// Rate at the outer edge, MB/s; with a head switch of 0 the switches are in it.
    pub media_mb_per_s: f64,
    /// Rate at the inner edge, MB/s.
    pub inner_mb_per_s: f64,
    /// Zones of constant rate between the two edges, each with as many bytes.
    pub zones: u32,
    /// Time lost at the end of each track, milliseconds.
    pub head_switch_ms: f64,
    /// What the head takes longer to settle before it may write, milliseconds.
    pub write_settle_ms: f64,
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
/// The surface is one long spiral: a run from byte 0 passes the head without a pause, and the
/// time at which byte `x` of it passes is the angle of `x`. That is what track skew is for: the
/// next track begins where the head arrives after the switch. In each zone the density, and so
/// the rate, is constant.
#[derive(Clone, Debug)]
pub struct Mechanics {
    turn_ns: f64,
    turns_per_ns: f64,
    zones: Vec<Zone>,
    zones_per_byte: f64,
    phase_ns: f64,
    track_bytes: f64,
    seek_share_per_byte: f64,
    write_settle_ns: f64,
    seek_ns_least: f64,
    seek_ns_root: f64,
    seek_ns_linear: f64,
}

/// A stretch of the spiral with one rate; bytes as stored.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_byte: f64,
    /// When its first byte passes, in a run from byte 0.
    first_ns: f64,
    ns_per_byte: f64,
}

impl Mechanics {
    /// Mechanics from checked values.
    pub fn new(spec: &MechanicsSpec) -> Mechanics {
        let turn_ns = 60e9 / f64::from(spec.rpm);
        let (root_ms, linear_ms) = seek_curve_ms(spec);
        let stored_bytes = spec.capacity_bytes as f64 / spec.stretch;
        let zones = zones(spec, turn_ns, stored_bytes);
        Mechanics {
            turn_ns,
            turns_per_ns: 1.0 / turn_ns,
            zones_per_byte: zones.len() as f64 / stored_bytes,
            phase_ns: spec.phase * turn_ns,
            track_bytes: turn_ns / zones[0].ns_per_byte,
            zones,
            seek_share_per_byte: spec.stretch / spec.capacity_bytes as f64,
            write_settle_ns: spec.write_settle_ms * 1e6,
            seek_ns_least: nanos_from_ms(spec.seek_ms_track_to_track) as f64,
            seek_ns_root: root_ms * 1e6,
            seek_ns_linear: linear_ms * 1e6,
        }
    }

    /// The angle of a byte, as the time from the start of the turn at which it passes the head.
    pub fn angle_ns(&self, target: u64) -> f64 {
        self.reduced(self.passing_ns(target) + self.phase_ns)
    }

    /// Time until the medium starts to pass under the head at `target`, whose angle is `angle_ns`,
    /// for a head at `from`: the seek, for a write the settling, then the wait for the sector to
    /// come round.
    pub fn positioning_ns(
        &self,
        now: Nanos,
        from: u64,
        target: u64,
        angle_ns: f64,
        write: bool,
    ) -> Nanos {
        let mut moving_ns = self.seek_ns(from, target);
        if write && moving_ns > 0.0 {
            moving_ns += self.write_settle_ns;
        }
        let wait_ns = self.rotation_ns(now as f64 + moving_ns, angle_ns);
        (moving_ns + wait_ns).round() as Nanos
    }

    /// Time that bytes take to pass under the head.
    pub fn transfer_ns(&self, from: u64, bytes: u64) -> Nanos {
        let zone = self.zone(from);
        let last = self.zones.len() - 1;
        let within = zone == last || (from + bytes) as f64 <= self.zones[zone + 1].first_byte;
        if within {
            return (bytes as f64 * self.zones[zone].ns_per_byte).round() as Nanos;
        }
        (self.passing_ns(from + bytes) - self.passing_ns(from)).round() as Nanos
    }

    /// Bytes from `from` on that pass under the head in a span of time, at the rate there.
    pub fn bytes_passed(&self, from: u64, span: Nanos) -> u64 {
        (span as f64 / self.zones[self.zone(from)].ns_per_byte) as u64
    }

    /// Longest time any positioning can take: a seek across the whole disk and one turn.
    #[cfg(test)]
    pub fn positioning_ns_max(&self) -> Nanos {
        (self.seek_ns_least
            + self.seek_ns_root
            + self.seek_ns_linear
            + self.write_settle_ns
            + self.turn_ns)
            .ceil() as Nanos
    }

    fn zone(&self, byte: u64) -> usize {
        ((byte as f64 * self.zones_per_byte) as usize).min(self.zones.len() - 1)
    }

    /// When a byte passes the head in a run from byte 0.
    fn passing_ns(&self, byte: u64) -> f64 {
        let zone = &self.zones[self.zone(byte)];
        zone.first_ns + (byte as f64 - zone.first_byte) * zone.ns_per_byte
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
        let share = (stored * self.seek_share_per_byte).min(1.0);
        self.seek_ns_least + self.seek_ns_root * share.sqrt() + self.seek_ns_linear * share
    }

    fn rotation_ns(&self, arrival_ns: f64, angle_ns: f64) -> f64 {
        let wait = self.reduced(angle_ns - arrival_ns);
        if self.turn_ns - wait < ROTATION_SLACK_NS {
            return 0.0;
        }
        wait
    }

    /// What is left of a time after whole turns; `rem_euclid` would take ten times as long.
    fn reduced(&self, ns: f64) -> f64 {
        ns - (ns * self.turns_per_ns).floor() * self.turn_ns
    }
}

/// The zones from the outer edge to the inner one.
fn zones(spec: &MechanicsSpec, turn_ns: f64, stored_bytes: f64) -> Vec<Zone> {
    let count = spec.zones.max(1);
    let mut first_ns = 0.0;
    (0..count)
        .map(|number| {
            let inwards = f64::from(number) / f64::from((count - 1).max(1));
            let mb_per_s =
                spec.media_mb_per_s + (spec.inner_mb_per_s - spec.media_mb_per_s) * inwards;
            let track_bytes = turn_ns / nanos_per_byte(mb_per_s);
            let zone = Zone {
                first_byte: stored_bytes / f64::from(count) * f64::from(number),
                first_ns,
                ns_per_byte: nanos_per_byte(mb_per_s) + spec.head_switch_ms * 1e6 / track_bytes,
            };
            first_ns += stored_bytes / f64::from(count) * zone.ns_per_byte;
            zone
        })
        .collect()
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
            inner_mb_per_s: 150.0,
            zones: 1,
            head_switch_ms: 0.0,
            write_settle_ms: 0.0,
            stretch: 1.0,
            phase: 0.0,
        }
    }

    fn positioning_ns(mechanics: &Mechanics, now: Nanos, from: u64, target: u64) -> Nanos {
        let angle_ns = mechanics.angle_ns(target);
        mechanics.positioning_ns(now, from, target, angle_ns, false)
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
        let just_missed = positioning_ns(&mechanics, 10_000, 0, 0);
        assert_eq!(just_missed, 8_333_333 - 10_000);
        assert_eq!(
            positioning_ns(&mechanics, 1_000, 0, 0),
            0,
            "within the slack"
        );
    }

    #[test]
    fn a_run_goes_on_without_waiting() {
        let mechanics = Mechanics::new(&spec());
        let mut now = 0;
        let mut head = 0;
        for len in [4096, 65536, 1 << 20, 8192, 1 << 26] {
            let wait = positioning_ns(&mechanics, now, head, head);
            assert!(wait < 10, "waited {wait} ns at byte {head}");
            now += wait + mechanics.transfer_ns(head, len);
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

    fn zoned() -> Mechanics {
        Mechanics::new(&MechanicsSpec {
            media_mb_per_s: 200.0,
            inner_mb_per_s: 100.0,
            zones: 11,
            ..spec()
        })
    }

    #[test]
    fn outer_zones_are_faster() {
        let mechanics = zoned();
        let rate = |from| (1u64 << 30) as f64 * 1e3 / mechanics.transfer_ns(from, 1 << 30) as f64;
        for (from, mb_per_s) in [
            (0, 200.0),
            (500_000_000_000, 150.0),
            (990_000_000_000, 100.0),
        ] {
            assert!(
                (rate(from) - mb_per_s).abs() < 0.1,
                "{} at {from}",
                rate(from)
            );
        }
    }

    #[test]
    fn a_run_across_a_zones_edge_goes_on_without_waiting() {
        let mechanics = zoned();
        let edge = 1_000_000_000_000 / 11;
        let (from, len) = (edge - 5_000_000, 10_000_000);
        let begin = positioning_ns(&mechanics, 0, from, from);
        let end = begin + mechanics.transfer_ns(from, len);
        assert!(positioning_ns(&mechanics, end, from + len, from + len) < 10);
    }

    #[test]
    fn a_head_switch_is_paid_once_a_track() {
        let mechanics = Mechanics::new(&MechanicsSpec {
            head_switch_ms: 1.0,
            ..spec()
        });
        // A track of 1.25 MB passes in 8.33 ms, and the switch takes 1 ms more.
        let took_ms = mechanics.transfer_ns(0, 125_000_000) as f64 / 1e6;
        assert!((took_ms - 100.0 * (8.333 + 1.0)).abs() < 0.1, "{took_ms}");
    }

    #[test]
    fn a_write_settles_after_a_seek() {
        let mechanics = Mechanics::new(&MechanicsSpec {
            write_settle_ms: 0.7,
            ..spec()
        });
        let far = 500_000_000_000;
        let angle_ns = mechanics.angle_ns(far);
        let take = |now, write| mechanics.positioning_ns(now, 0, far, angle_ns, write);
        let turn = mechanics.turn_ns as Nanos;
        let later = (0..10_000_000)
            .step_by(100_000)
            .filter(|&now| take(now, true) > take(now, false));
        // 0.7 ms of 8.33: of so many arrivals the sector is just missed, and comes a turn later.
        assert!((7..=10).contains(&later.clone().count()));
        assert!(
            later
                .into_iter()
                .all(|now| take(now, true).abs_diff(take(now, false) + turn) < 2)
        );
        assert_eq!(
            mechanics.positioning_ns(0, 0, 0, 0.0, true),
            0,
            "no seek, no settling"
        );
    }

    #[test]
    fn no_positioning_exceeds_the_longest() {
        let mechanics = Mechanics::new(&spec());
        for now in (0..10_000_000).step_by(99_991) {
            let took = positioning_ns(&mechanics, now, 0, 999_999_990_000);
            assert!(took <= mechanics.positioning_ns_max());
        }
    }
}
