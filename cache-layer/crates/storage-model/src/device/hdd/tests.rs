use super::*;
use virtual_time::nanos_from_ms;

const MS: Nanos = 1_000_000;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

fn spec() -> HddSpec {
    HddSpec {
        mechanics: MechanicsSpec {
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
        },
        queue_depth: 32,
        read_ahead_bytes: 512 * KIB,
        read_buffer_bytes: 48 * 1024 * KIB,
        write_gather_bytes: MIB,
        write_cache_bytes: 0,
        command_overhead: 0,
        interface_ns_per_byte: 0.0,
        age_max: 500 * MS,
    }
}

/// Runs the disk until it rests; tag and time of each completion.
fn finish(disk: &mut Hdd) -> Vec<(u64, Nanos)> {
    let mut done = Vec::new();
    while let Some(at) = disk.next_event() {
        disk.advance(at, &mut done);
    }
    done.iter().map(|c| (c.tag, c.at)).collect()
}

/// Makes one request and waits for it; how long it took.
fn one(disk: &mut Hdd, now: &mut Nanos, op: Op, offset: u64, len: u64) -> Nanos {
    let mut done = Vec::new();
    disk.advance(*now, &mut done);
    disk.submit(*now, Request::whole(0, op, offset, len));
    while done.is_empty() {
        let at = disk.next_event().expect("a request is in the disk");
        disk.advance(at, &mut done);
    }
    let took = done[0].at - *now;
    *now = done[0].at;
    took
}

#[test]
fn a_read_costs_seek_rotation_and_transfer() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    let took = one(&mut disk, &mut now, Op::Read, 500_000_000_000, 8 * KIB);
    let seek = nanos_from_ms(0.8 + 12.9375 * 0.5f64.sqrt());
    let turn = nanos_from_ms(60_000.0 / 7200.0);
    assert!(took > seek && took < seek + turn + MS / 10, "{took}");
}

#[test]
fn reading_on_soon_comes_from_the_buffer() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    for offset in [0, 64 * KIB] {
        one(&mut disk, &mut now, Op::Read, offset, 64 * KIB);
    }
    now += 20 * MS;
    let took = one(&mut disk, &mut now, Op::Read, 128 * KIB, 64 * KIB);
    assert_eq!(took, 0);
}

#[test]
fn a_stream_without_pauses_runs_at_media_rate() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    for i in 0..200 {
        one(&mut disk, &mut now, Op::Read, i * MIB, MIB);
    }
    let mb_per_s = 200.0 * MIB as f64 * 1e3 / now as f64;
    assert!((147.0..150.1).contains(&mb_per_s), "{mb_per_s}");
}

#[test]
fn a_stream_with_a_late_host_still_runs_at_media_rate() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    for i in 0..200 {
        one(&mut disk, &mut now, Op::Read, i * MIB, MIB);
        now += MS / 10;
    }
    let mb_per_s = 200.0 * MIB as f64 * 1e3 / now as f64;
    assert!((145.0..150.1).contains(&mb_per_s), "{mb_per_s}");
}

#[test]
fn a_random_read_interrupts_read_ahead() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    one(&mut disk, &mut now, Op::Read, 0, 64 * KIB);
    one(&mut disk, &mut now, Op::Read, 64 * KIB, 64 * KIB);
    // The read-ahead would go on for 3.5 ms; the read of a neighbouring track need not wait.
    let took = one(&mut disk, &mut now, Op::Read, 2_000_000, 8 * KIB);
    assert!(took < 10 * MS, "{took}");
}

#[test]
fn the_nearest_goes_first() {
    let mut disk = Hdd::new(spec());
    disk.submit(0, Request::whole(1, Op::Read, 900_000_000_000, 8 * KIB));
    // Across the disk costs more than next door and a whole turn.
    disk.submit(0, Request::whole(2, Op::Read, 0, 8 * KIB));
    disk.submit(0, Request::whole(3, Op::Read, 899_998_000_000, 8 * KIB));
    let order: Vec<_> = finish(&mut disk).iter().map(|(tag, _)| *tag).collect();
    assert_eq!(order, [1, 3, 2], "the first was alone when it came");
}

#[test]
fn without_a_queue_the_order_is_that_of_arrival() {
    let mut disk = Hdd::new(HddSpec {
        queue_depth: 1,
        ..spec()
    });
    for (tag, offset) in [(1, 900), (2, 100), (3, 890), (4, 110)] {
        disk.submit(
            0,
            Request::whole(tag, Op::Read, offset * 1_000_000_000, 8 * KIB),
        );
    }
    let order: Vec<_> = finish(&mut disk).iter().map(|(tag, _)| *tag).collect();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[test]
fn nothing_starves_beside_a_crowd() {
    const FAR: u64 = u64::MAX;
    let mut disk = Hdd::new(spec());
    let mut done = Vec::new();
    disk.submit(0, Request::whole(0, Op::Read, 0, 8 * KIB));
    disk.submit(0, Request::whole(FAR, Op::Read, 999_000_000_000, 8 * KIB));
    // Sixteen requests near the arm at all times: the far one never is the nearest.
    for tag in 1..=16 {
        disk.submit(0, Request::whole(tag, Op::Read, tag * 3_000_000, 8 * KIB));
    }
    let mut made = 17;
    let far_at = loop {
        let at = disk.next_event().expect("the crowd never ends");
        let first = done.len();
        disk.advance(at, &mut done);
        for completion in done[first..].iter().copied() {
            if completion.tag != FAR {
                let offset = (made * 7 % 64) * 3_000_000;
                disk.submit(at, Request::whole(made, Op::Read, offset, 8 * KIB));
                made += 1;
            }
        }
        if let Some(far) = done.iter().find(|completion| completion.tag == FAR) {
            break far.at;
        }
    };
    assert!(far_at > 500 * MS, "it was outbid until its age: {far_at}");
    let bound = 500 * MS + 3 * disk.mechanics.positioning_ns_max();
    assert!(far_at < bound, "{far_at}");
}

#[test]
fn a_small_log_write_always_pays_its_turn() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    for i in 0..20 {
        let took = one(&mut disk, &mut now, Op::Write, i * 8 * KIB, 8 * KIB);
        now += MS / 10;
        assert!(i == 0 || took > 7 * MS, "write {i} took {took}");
    }
}

#[test]
fn a_bulk_write_stream_runs_at_media_rate() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    for i in 0..400 {
        one(&mut disk, &mut now, Op::Write, i * 128 * KIB, 128 * KIB);
        now += MS / 10;
    }
    let mb_per_s = 400.0 * 128.0 * KIB as f64 * 1e3 / now as f64;
    assert!((130.0..170.0).contains(&mb_per_s), "{mb_per_s}");
}

#[test]
fn a_flush_waits_for_gathered_writes() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    one(&mut disk, &mut now, Op::Write, 0, 512 * KIB);
    now += MS;
    let accepted = one(&mut disk, &mut now, Op::Write, 512 * KIB, 512 * KIB);
    assert_eq!(accepted, 0, "gathered");
    let flushed = one(&mut disk, &mut now, Op::Flush, 0, 0);
    let transfer = disk.mechanics.transfer_ns(512 * KIB, 512 * KIB);
    assert!(flushed >= transfer, "{flushed}");
    assert_eq!(one(&mut disk, &mut now, Op::Flush, 0, 0), 0, "all drained");
}

#[test]
fn a_flush_does_not_wait_for_what_comes_after_it() {
    let mut disk = Hdd::new(spec());
    disk.submit(0, Request::whole(1, Op::Write, 0, 8 * KIB));
    disk.submit(0, Request::whole(2, Op::Flush, 0, 0));
    disk.submit(0, Request::whole(3, Op::Write, 900_000_000_000, 8 * KIB));
    let order: Vec<_> = finish(&mut disk).iter().map(|(tag, _)| *tag).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_write_takes_stale_bytes_out_of_the_buffer() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    one(&mut disk, &mut now, Op::Read, 0, 64 * KIB);
    assert_eq!(one(&mut disk, &mut now, Op::Read, 0, 64 * KIB), 0);
    one(&mut disk, &mut now, Op::Write, 4 * KIB, 4 * KIB);
    assert!(one(&mut disk, &mut now, Op::Read, 0, 64 * KIB) > MS);
}

#[test]
fn a_read_up_to_the_last_byte_does_not_read_ahead_beyond_it() {
    let mut disk = Hdd::new(spec());
    let mut now = 0;
    let capacity = 1_000_000_000_000;
    for offset in [capacity - 128 * KIB, capacity - 64 * KIB] {
        one(&mut disk, &mut now, Op::Read, offset, 64 * KIB);
    }
    finish(&mut disk);
    assert!(disk.head <= capacity);
}

#[test]
fn the_electronics_and_the_interface_take_their_time_from_a_buffer_hit() {
    let mut disk = Hdd::new(HddSpec {
        command_overhead: 100_000,
        interface_ns_per_byte: 1e3 / 300.0,
        ..spec()
    });
    let mut now = 0;
    one(&mut disk, &mut now, Op::Read, 0, 64 * KIB);
    let hit = one(&mut disk, &mut now, Op::Read, 0, 64 * KIB);
    assert_eq!(hit, 100_000 + (65_536.0f64 / 0.3).ceil() as Nanos);
}

#[test]
fn a_write_cache_answers_at_once_until_it_is_full() {
    let mut disk = Hdd::new(HddSpec {
        write_cache_bytes: 64 * KIB,
        ..spec()
    });
    for tag in 0..9 {
        disk.submit(
            0,
            Request::whole(tag, Op::Write, (tag + 1) * 90_000_000_000, 8 * KIB),
        );
    }
    assert_eq!(disk.volatile_bytes(0), 64 * KIB);
    let done = finish(&mut disk);
    assert_eq!(done.iter().filter(|(_, at)| *at == 0).count(), 8);
    assert!(done[8].1 > MS, "the ninth waited for the arm");
    assert_eq!(
        disk.volatile_bytes(0),
        0,
        "a disk at rest has written everything"
    );
}

#[test]
fn with_a_write_cache_a_flush_costs_the_arm_its_way() {
    let mut disk = Hdd::new(HddSpec {
        write_cache_bytes: 1 << 20,
        ..spec()
    });
    let mut now = 0;
    assert_eq!(
        one(&mut disk, &mut now, Op::Write, 700_000_000_000, 8 * KIB),
        0
    );
    assert!(one(&mut disk, &mut now, Op::Flush, 0, 0) > MS);
}
