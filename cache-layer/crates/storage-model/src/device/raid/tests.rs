use super::members::MemberState;
use super::*;
use crate::device::ssd::{DirectionSpec, Ssd, SsdSpec};
use crate::spec::ModelSpec;
use proptest::prelude::*;

const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;
const KIB: u64 = 1024;

/// Members that read in 100 us and write in 50, 100,000 times a second.
fn member() -> Ssd {
    let direction = |latency| DirectionSpec {
        latency,
        iops: 100_000,
        mb_per_s: 500.0,
    };
    Ssd::new(&SsdSpec::of_data_sheet(
        direction(100 * US),
        direction(50 * US),
    ))
}

fn array(level: Level, members: usize, spares: usize) -> Raid<Ssd> {
    let spec = RaidSpec {
        geometry: Geometry {
            level,
            members,
            chunk_bytes: 64 * KIB,
        },
        cached_rows: 16,
        spares,
        rebuild: RebuildSpec {
            mb_per_s_min: 10.0,
            mb_per_s_max: 200.0,
        },
        member_bytes: 8 << 20,
    };
    Raid::new(spec, |_| member())
}

/// Runs it until it rests.
fn finish(raid: &mut Raid<Ssd>) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(at) = raid.next_event() {
        raid.advance(at, &mut done);
    }
    done
}

/// Makes one request on an array at rest; how long it took, and whether it failed.
fn one(raid: &mut Raid<Ssd>, now: Nanos, op: Op, offset: u64, len: u64) -> (Nanos, bool) {
    raid.submit(now, Request::whole(1, op, offset, len));
    let mut done = Vec::new();
    while done.is_empty() {
        let at = raid.next_event().expect("a request is under way");
        raid.advance(at, &mut done);
    }
    assert_eq!(done.len(), 1);
    (done[0].at - now, done[0].failed)
}

#[test]
fn a_small_write_reads_the_old_data_and_parity_first() {
    let mut raid = array(Level::Raid5, 5, 0);
    let (took, _) = one(&mut raid, 0, Op::Write, 0, 4 * KIB);
    assert_eq!(took, 150 * US);
    assert_eq!(raid.status().rows.read_modify_write, 1);
    let (again, _) = one(&mut raid, MS, Op::Write, 0, 4 * KIB);
    assert_eq!(again, 50 * US, "the stripe cache remembers both");
}

#[test]
fn a_whole_row_is_written_without_reading() {
    let mut raid = array(Level::Raid6, 6, 0);
    let (took, _) = one(&mut raid, 0, Op::Write, 0, 4 * 64 * KIB);
    assert!(took < 200 * US, "{took}");
    assert_eq!(raid.status().rows.full_stripe, 1);
}

#[test]
fn without_a_member_its_data_is_worked_out_from_the_others() {
    let mut raid = array(Level::Raid5, 5, 0);
    raid.fail(0, 0).unwrap();
    let written = |raid: &Raid<Ssd>| -> u64 { raid.devices().map(|d| d.wear().host_bytes).sum() };
    // Unit 0 of row 0 is on member 0.
    assert_eq!(one(&mut raid, 0, Op::Read, 0, 4 * KIB), (100 * US, false));
    assert_eq!(one(&mut raid, MS, Op::Write, 0, 4 * KIB), (150 * US, false));
    assert_eq!(
        written(&raid),
        4 * KIB,
        "the parity alone takes the new data"
    );
    assert_eq!(raid.status().members[0], MemberState::Failed);
}

#[test]
fn a_level_fails_requests_when_too_many_members_are_gone() {
    for (level, members, bears) in [
        (Level::Raid0, 4, 0),
        (Level::Raid5, 5, 1),
        (Level::F1, 5, 1),
        (Level::Raid6, 6, 2),
        (Level::Raid1, 3, 2),
    ] {
        let mut raid = array(level, members, 0);
        let size = raid.spec.geometry.row_bytes() * 20;
        for failed in 0..=bears {
            assert!(
                !one(&mut raid, 0, Op::Read, 0, size).1,
                "{level} without {failed}"
            );
            assert!(
                !one(&mut raid, 0, Op::Write, 0, size).1,
                "{level} without {failed}"
            );
            raid.fail(0, failed).unwrap();
        }
        assert!(
            one(&mut raid, 0, Op::Read, 0, size).1,
            "{level} reads what is lost"
        );
        assert!(
            one(&mut raid, 0, Op::Write, 0, size).1,
            "{level} writes what is lost"
        );
    }
}

#[test]
fn a_spare_takes_the_place_of_a_failed_member_and_is_filled() {
    let mut raid = array(Level::Raid5, 5, 1);
    raid.fail(0, 2).unwrap();
    assert_eq!(raid.status().members[2], MemberState::Rebuilding(0.0));
    assert_eq!(raid.status().spares, 0);
    let (mut seen, mut done) = (0.0, Vec::new());
    let mut now = 0;
    while let Some(at) = raid.next_event() {
        raid.advance(at, &mut done);
        now = at;
        if let MemberState::Rebuilding(share) = raid.status().members[2] {
            assert!(share >= seen);
            seen = share;
        }
    }
    assert!(seen > 0.5, "progress was to be seen: {seen}");
    assert_eq!(raid.status().members[2], MemberState::Active);
    // 8 MiB at 200 MB/s.
    assert!((40 * MS..60 * MS).contains(&now), "{now}");
    let filled = raid.members[2].device.as_ref().unwrap().wear().host_bytes;
    assert_eq!(filled, 8 << 20);
}

#[test]
fn a_rebuild_slows_down_while_the_host_works() {
    let mut raid = array(Level::Raid5, 5, 1);
    raid.fail(0, 2).unwrap();
    let (mut now, mut done) = (0, Vec::new());
    while raid.status().members[2] != MemberState::Active {
        now += MS;
        raid.advance(now, &mut done);
        raid.submit(now, Request::whole(1, Op::Read, 0, 4 * KIB));
    }
    // 8 MiB at 10 MB/s, but for the first step.
    assert!((700 * MS..900 * MS).contains(&now), "{now}");
}

#[test]
fn a_member_that_is_back_is_rebuilt() {
    let mut raid = array(Level::Raid10, 4, 0);
    assert_eq!(raid.replace(0, 1), Err(MemberError::Active(1)));
    raid.fail(0, 1).unwrap();
    assert_eq!(raid.fail(0, 1), Err(MemberError::Failed(1)));
    raid.replace(0, 1).unwrap();
    finish(&mut raid);
    assert_eq!(raid.status().members, vec![MemberState::Active; 4]);
    let unknown = MemberError::Unknown { member: 4, last: 3 };
    assert_eq!(raid.fail(0, 4), Err(unknown));
}

#[test]
fn what_is_lost_is_not_rebuilt() {
    let mut raid = array(Level::Raid0, 4, 0);
    raid.fail(0, 1).unwrap();
    let error = raid.replace(0, 1).unwrap_err().to_string();
    assert!(error.contains("RAID 0 has lost data"), "{error}");
}

#[test]
fn one_member_of_f1_wears_out_first() {
    let mut raid = array(Level::F1, 6, 0);
    for number in 0..7 * 20u64 {
        one(
            &mut raid,
            number * 10 * MS,
            Op::Write,
            (number * 5 + number % 5) * 64 * KIB,
            4 * KIB,
        );
    }
    let written: Vec<u64> = raid
        .devices()
        .map(|device| device.wear().host_bytes)
        .collect();
    assert!(
        written[1..].iter().all(|&bytes| bytes < written[0]),
        "{written:?}"
    );
}

#[test]
fn whole_rows_are_discarded_on_every_member_and_no_part_of_one() {
    for (level, members, row_bytes) in [
        (Level::Raid5, 5, 4 * 64 * KIB),
        (Level::Raid6, 6, 4 * 64 * KIB),
        (Level::F1, 5, 4 * 64 * KIB),
    ] {
        let mut raid = array(level, members, 0);
        one(&mut raid, 0, Op::Write, 0, 8 * row_bytes);
        let given_back = |raid: &Raid<Ssd>| -> Vec<u64> {
            raid.devices()
                .map(|member| member.wear().discarded_bytes)
                .collect()
        };
        // From the middle of row 0 to the middle of row 6: rows 1 to 5.
        let (from, len) = (row_bytes / 2, 6 * row_bytes);
        assert!(!one(&mut raid, MS, Op::Discard, from, len).1, "{level}");
        assert_eq!(given_back(&raid), vec![5 * 64 * KIB; members], "{level}");
        // Less than a row is nothing.
        one(&mut raid, 2 * MS, Op::Discard, from, row_bytes);
        assert_eq!(given_back(&raid), vec![5 * 64 * KIB; members], "{level}");
        // What was known of a row is not true any more.
        let (took, _) = one(&mut raid, 3 * MS, Op::Write, row_bytes, 4 * KIB);
        assert_eq!(took, 150 * US, "{level}: read first, then written");
    }
}

#[test]
fn a_discard_waits_for_a_write_to_its_rows() {
    let mut raid = array(Level::Raid5, 5, 0);
    raid.submit(0, Request::whole(1, Op::Write, 0, 4 * KIB));
    raid.submit(0, Request::whole(2, Op::Discard, 0, 4 * 64 * KIB));
    let done = finish(&mut raid);
    assert_eq!(
        done.iter()
            .map(|completion| completion.tag)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(raid.locks.is_empty() && raid.works.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Io(Op, u64, u64),
    Fail(usize),
    Replace(usize),
}

fn any_steps() -> impl Strategy<Value = Vec<(Nanos, Step)>> {
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Write, Op::Flush, Op::Discard]);
    let io = (op, 0u64..6 << 20, 1u64..600 * KIB)
        .prop_map(|(op, offset, len)| Step::Io(op, offset, len));
    let step = prop_oneof![
        20 => io,
        1 => (0usize..6).prop_map(Step::Fail),
        1 => (0usize..6).prop_map(Step::Replace),
    ];
    let pause = prop::sample::select(vec![0, 10 * US, 200 * US, 5 * MS]);
    prop::collection::vec((pause, step), 1..120)
}

proptest! {
    #[test]
    fn whatever_fails_and_returns_every_request_is_answered_once(
        level in prop::sample::select(vec![
            Level::Raid0, Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6, Level::F1,
        ]),
        spares in 0usize..2,
        steps in any_steps(),
    ) {
        let mut raid = array(level, 6, spares);
        let (mut now, mut done, mut tags) = (0, Vec::new(), Vec::new());
        let mut worst = 0;
        for (number, (pause, step)) in steps.into_iter().enumerate() {
            now += pause;
            raid.advance(now, &mut done);
            match step {
                Step::Io(op, offset, len) => {
                    let len = if op == Op::Flush { 0 } else { len };
                    raid.submit(now, Request::whole(number as u64, op, offset, len));
                    tags.push(number as u64);
                }
                // Refusals of the impossible are tested elsewhere.
                Step::Fail(member) => drop(raid.fail(now, member)),
                Step::Replace(member) => drop(raid.replace(now, member)),
            }
            let gone = raid.status().members.iter().filter(|m| **m != MemberState::Active).count();
            worst = worst.max(gone);
        }
        done.extend(finish(&mut raid));
        let mut answered: Vec<u64> = done.iter().map(|completion| completion.tag).collect();
        answered.sort_unstable();
        prop_assert_eq!(answered, tags);
        if worst <= level.parities().max(usize::from(matches!(level, Level::Raid1 | Level::Raid10))) {
            prop_assert!(done.iter().all(|completion| !completion.failed));
        }
        prop_assert!(raid.works.is_empty() && raid.locks.is_empty() && raid.blocked.is_empty());
    }
}

#[test]
fn the_published_arrays_bear_a_failure_under_load() {
    let spec = ModelSpec::load("dc500m-raid5").unwrap();
    let mut model = spec.build(1 << 30).unwrap();
    model.fail(0, 3).unwrap();
    model.submit(0, Request::whole(1, Op::Read, 0, 1 << 20));
    let mut done = Vec::new();
    while done.is_empty() {
        let at = model.next_event().unwrap();
        model.advance(at, &mut done);
    }
    assert!(!done[0].failed);
    assert_eq!(model.status().array.unwrap().spares, 1);
}
