use super::*;
use proptest::prelude::*;

const US: Nanos = 1_000;
const PAGE: u64 = 8192;
const MIB: u64 = 1 << 20;

/// Figures to reckon with in the head: a read takes 10 us or 1 ns a byte out of the budget, a
/// write 20 us or 2 ns a byte.
const ROUND: SsdSpec = SsdSpec {
    read: DirectionSpec {
        latency: 90 * US,
        iops: 100_000,
        mb_per_s: 1000.0,
    },
    write: DirectionSpec {
        latency: 30 * US,
        iops: 50_000,
        mb_per_s: 500.0,
    },
    power_loss_protection: true,
    program: 600 * US,
    nand: None,
};

fn request(tag: u64, op: Op, len: u64) -> Request {
    Request::whole(tag, op, 0, len)
}

/// Runs the flash until it rests; tag and time of each completion.
fn finish(flash: &mut Ssd) -> Vec<(u64, Nanos)> {
    let mut done = Vec::new();
    while let Some(at) = flash.next_event() {
        flash.advance(at, &mut done);
    }
    done.iter().map(|c| (c.tag, c.at)).collect()
}

/// Submits everything at time 0 under tags from 0; tag and time of each completion.
fn at_once(requests: &[(Op, u64)]) -> Vec<(u64, Nanos)> {
    let mut flash = Ssd::new(&ROUND);
    for (tag, &(op, len)) in (0..).zip(requests) {
        flash.submit(0, request(tag, op, len));
    }
    finish(&mut flash)
}

#[test]
fn one_request_at_a_time_takes_its_latency() {
    let mut flash = Ssd::new(&ROUND);
    let mut now = 5;
    for (op, len, took) in [
        (Op::Read, PAGE, 90 * US),
        (Op::Write, PAGE, 30 * US),
        (Op::Read, 512, 90 * US),
        // Of the transfer, the latency holds what fits in the period.
        (Op::Read, MIB, 90 * US + MIB - 10 * US),
        (Op::Write, MIB, 30 * US + 2 * MIB - 20 * US),
    ] {
        flash.submit(now, request(0, op, len));
        now += took;
        assert_eq!(finish(&mut flash), [(0, now)]);
    }
}

#[test]
fn a_latency_below_the_period_holds_too() {
    let mut spec = ROUND;
    spec.write.latency = 0;
    let mut flash = Ssd::new(&spec);
    flash.submit(0, request(0, Op::Write, PAGE));
    flash.submit(0, request(1, Op::Write, PAGE));
    assert_eq!(finish(&mut flash), [(0, 0), (1, 20 * US)]);
}

#[test]
fn latencies_overlap_and_periods_do_not() {
    let reads = at_once(&[(Op::Read, PAGE); 3]);
    assert_eq!(reads, [(0, 90 * US), (1, 100 * US), (2, 110 * US)]);
}

#[test]
fn reads_and_writes_wait_for_each_other() {
    let done = at_once(&[(Op::Write, PAGE), (Op::Read, PAGE), (Op::Write, PAGE)]);
    assert_eq!(done, [(0, 30 * US), (2, 60 * US), (1, 110 * US)]);
}

#[test]
fn what_completes_together_comes_in_order_of_submission() {
    let mut flash = Ssd::new(&ROUND);
    flash.submit(0, request(0, Op::Read, PAGE));
    flash.advance(60 * US, &mut Vec::new());
    flash.submit(60 * US, request(1, Op::Write, PAGE));
    assert_eq!(finish(&mut flash), [(0, 90 * US), (1, 90 * US)]);
}

#[test]
fn a_flush_waits_for_the_writes_before_it_and_for_nothing_else() {
    let done = at_once(&[
        (Op::Read, PAGE),
        (Op::Flush, 0),
        (Op::Write, PAGE),
        (Op::Flush, 0),
        (Op::Write, PAGE),
    ]);
    let known = [(1, 0), (2, 40 * US), (3, 40 * US), (4, 60 * US)];
    assert_eq!(done[..4], known);
}

#[test]
fn a_flush_of_what_is_written_takes_no_time() {
    let mut flash = Ssd::new(&ROUND);
    flash.submit(0, request(0, Op::Write, PAGE));
    flash.advance(50 * US, &mut Vec::new());
    flash.submit(50 * US, request(1, Op::Flush, 0));
    assert_eq!(flash.next_event(), Some(50 * US));
}

#[test]
fn a_stream_of_writes_takes_its_share_from_the_reads() {
    let mut flash = Ssd::new(&ROUND);
    let ops = [Op::Read, Op::Write];
    for tag in 0..32 {
        flash.submit(0, request(tag, ops[tag as usize % 2], PAGE));
    }
    let (mut counts, mut batch) = ([0, 0], Vec::new());
    while let Some(at) = flash.next_event().filter(|&at| at <= 1_000_000 * US) {
        flash.advance(at, &mut batch);
        for Completion { tag, at, .. } in batch.drain(..) {
            counts[tag as usize % 2] += 1;
            flash.submit(at, request(tag, ops[tag as usize % 2], PAGE));
        }
    }
    // A second of budget is all that reads and writes have together, and they use it up.
    let [reads, writes] = counts;
    let used = 10 * US * reads + 20 * US * writes;
    assert!(
        (999_900 * US..=1_000_100 * US).contains(&used),
        "{counts:?}"
    );
    assert!(reads > 30_000 && writes > 30_000, "{counts:?}");
}

#[test]
fn an_unprotected_drive_flushes_to_the_cells_and_loses_its_buffer() {
    for (power_loss_protection, flushed_at, volatile) in
        [(true, 30 * US, 0), (false, 630 * US, PAGE)]
    {
        let mut flash = Ssd::new(&SsdSpec {
            power_loss_protection,
            ..ROUND
        });
        flash.submit(0, request(0, Op::Write, PAGE));
        flash.submit(0, request(1, Op::Flush, 0));
        assert_eq!(flash.volatile_bytes(40 * US), volatile);
        assert_eq!(flash.volatile_bytes(640 * US), 0);
        assert_eq!(finish(&mut flash)[1], (1, flushed_at));
    }
}

#[test]
fn a_head_start_shortens_a_latency_and_no_ceiling() {
    let mut flash = Ssd::new(&ROUND);
    for tag in 0..3 {
        let head_start = 50 * US;
        flash.submit(
            0,
            Request {
                head_start,
                ..request(tag, Op::Read, PAGE)
            },
        );
    }
    assert_eq!(
        finish(&mut flash),
        [(0, 40 * US), (1, 50 * US), (2, 60 * US)]
    );
}

#[test]
fn what_is_written_is_counted() {
    let mut flash = Ssd::new(&ROUND);
    flash.submit(0, request(0, Op::Write, PAGE));
    flash.submit(0, request(1, Op::Read, PAGE));
    let known = Wear {
        host_bytes: PAGE,
        cell_bytes: PAGE,
        ..Wear::default()
    };
    assert_eq!(flash.wear(), known);
}

fn any_spec() -> impl Strategy<Value = SsdSpec> {
    let direction = || {
        (0..200 * US, 1_000u32..1_000_000, 50.0..5000.0f64).prop_map(|(latency, iops, mb_per_s)| {
            DirectionSpec {
                latency,
                iops,
                mb_per_s,
            }
        })
    };
    (direction(), direction()).prop_map(|(read, write)| SsdSpec::of_data_sheet(read, write))
}

/// Requests with the pause before each.
fn any_requests() -> impl Strategy<Value = Vec<(Nanos, Request)>> {
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Flush]);
    let pause = prop::sample::select(vec![0, 0, US, 30 * US, 2_000 * US]);
    let len = prop_oneof![512..2 * PAGE, 512..2 * MIB];
    prop::collection::vec((op, pause, len), 1..100).prop_map(|plan| {
        let requests = (0..).zip(plan);
        requests
            .map(|(tag, (op, pause, len))| {
                let len = if op == Op::Flush { 0 } else { len };
                (pause, request(tag, op, len))
            })
            .collect()
    })
}

/// The flash with the requests made at their times, and what completed so far.
fn submitted(spec: &SsdSpec, requests: &[(Nanos, Request)]) -> (Ssd, Vec<(u64, Nanos)>) {
    let mut flash = Ssd::new(spec);
    let (mut now, mut done) = (0, Vec::new());
    for (pause, request) in requests {
        now += pause;
        flash.advance(now, &mut done);
        flash.submit(now, *request);
    }
    (flash, done.iter().map(|c| (c.tag, c.at)).collect())
}

proptest! {
    #[test]
    fn no_ceiling_is_exceeded_over_any_span(spec in any_spec(), requests in any_requests()) {
        let (mut flash, mut done) = submitted(&spec, &requests);
        done.extend(finish(&mut flash));
        for (op, direction) in [(Op::Read, spec.read), (Op::Write, spec.write)] {
            let of_op = |&(tag, at): &(u64, Nanos)| {
                let request = requests[tag as usize].1;
                (request.op == op).then_some((at, request.len))
            };
            let completed: Vec<_> = done.iter().filter_map(of_op).collect();
            for (index, &(from, _)) in completed.iter().enumerate() {
                let (mut count, mut bytes) = (0.0, 0.0);
                for &(to, len) in &completed[index + 1..] {
                    count += 1.0;
                    bytes += len as f64;
                    let seconds = (to - from) as f64 / NANOS_PER_S;
                    prop_assert!(count <= f64::from(direction.iops) * seconds * (1.0 + 1e-9));
                    prop_assert!(bytes <= direction.mb_per_s * 1e6 * seconds * (1.0 + 1e-9));
                }
            }
        }
    }

    /// What a last read finds before it is the sum of the shares, no more (work-conserving) and
    /// no less (one budget).
    #[test]
    fn the_budget_is_one_and_never_idles(spec in any_spec(), requests in any_requests()) {
        let requests: Vec<_> = requests.iter().map(|(_, request)| (0, *request)).collect();
        let (mut flash, _) = submitted(&spec, &requests);
        let share = |request: &Request| {
            let direction = match request.op {
                Op::Read => spec.read,
                Op::Write => spec.write,
                Op::Flush | Op::Discard => return 0.0,
            };
            let transfer = request.len as f64 / (direction.mb_per_s * 1e6);
            transfer.max(1.0 / f64::from(direction.iops)) * NANOS_PER_S
        };
        let backlog: f64 = requests.iter().map(|(_, request)| share(request)).sum();
        flash.submit(0, request(u64::MAX, Op::Read, 0));
        let done = finish(&mut flash);
        let (_, at) = done[done.iter().position(|&(tag, _)| tag == u64::MAX).unwrap()];
        let waited = (at - spec.read.latency) as f64;
        // Each share is rounded up to a nanosecond.
        prop_assert!(waited >= backlog - 0.5, "{waited} < {backlog}");
        prop_assert!(waited <= backlog + requests.len() as f64 + 0.5, "{waited} > {backlog}");
    }

    #[test]
    fn a_rested_flash_has_its_latency_back(spec in any_spec(), requests in any_requests()) {
        let (mut flash, _) = submitted(&spec, &requests);
        let now = finish(&mut flash).last().map_or(0, |&(_, at)| at) + 10_000_000 * US;
        flash.submit(now, request(0, Op::Read, 0));
        prop_assert_eq!(finish(&mut flash), [(0, now + spec.read.latency)]);
    }

    #[test]
    fn the_next_event_is_the_next_completion(spec in any_spec(), requests in any_requests()) {
        let (mut flash, _) = submitted(&spec, &requests);
        while let Some(at) = flash.next_event() {
            let mut done = Vec::new();
            if at > 0 {
                flash.advance(at - 1, &mut done);
            }
            prop_assert!(done.is_empty());
            flash.advance(at, &mut done);
            prop_assert!(!done.is_empty());
            prop_assert!(done.iter().all(|completion| completion.at == at));
        }
    }
}
