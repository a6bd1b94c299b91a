use super::*;
use crate::model::{LinkFields, Placement};
use proptest::prelude::*;

fn model(name: &str) -> ModelSpec {
    ModelSpec::load(name).unwrap()
}

fn promised(spec: &ModelSpec, size_bytes: u64) -> Expectation {
    expect(spec, size_bytes, size_bytes, TimeScale::ONE).unwrap()
}

fn iops(expectation: &Expectation) -> Vec<f64> {
    let points = &expectation.random_read_8k;
    points.iter().map(|point| point.iops).collect()
}

fn assert_near(what: &str, found: f64, known: f64, share: f64) {
    assert!(
        (found / known - 1.0).abs() <= share,
        "{what}: {found:.1}, not within {:.0} % of {known}",
        share * 100.0
    );
}

#[test]
fn one_disk_is_as_fast_as_such_disks_are() {
    let spec = model("hdd-7200");
    let whole = promised(&spec, 1_000_000_000_000);
    assert_near("queue depth 1", iops(&whole)[0], 84.0, 0.03);
    assert_near("queue depth 32", iops(&whole)[3], 190.0, 0.05);
    assert_near("read", whole.sequential_read_mb_per_s, 150.0, 0.02);
    assert_near("write", whole.sequential_write_mb_per_s, 150.0, 0.05);
}

#[test]
fn without_a_command_queue_depth_buys_nothing() {
    let mut spec = model("hdd-7200");
    spec.disk.queue_depth = 1;
    let whole = promised(&spec, 1_000_000_000_000);
    assert_near("queue depth 32", iops(&whole)[3], 82.0, 0.05);
}

#[test]
fn the_nas_is_as_fast_as_the_reference_was() {
    let nas = promised(&model("nas-2014"), 2 << 30);
    for (found, known) in iops(&nas).into_iter().zip([126.0, 383.0, 850.0, 1117.0]) {
        assert_near("random read", found, known, 0.1);
    }
    assert_near("read", nas.sequential_read_mb_per_s, 116.0, 0.02);
    assert_near("write", nas.sequential_write_mb_per_s, 116.0, 0.02);
}

#[test]
fn a_small_file_spread_out_is_sought_like_the_whole_span() {
    let spec = model("nas-2014");
    let small = promised(&spec, 1 << 30);
    let whole = promised(&spec, spec.span_bytes());
    for (small, whole) in iops(&small).into_iter().zip(iops(&whole)) {
        assert_near("random read", small, whole, 0.03);
    }
    let short_stroke = ModelSpec {
        placement: Placement::ShortStroke,
        ..spec
    };
    let unstretched = promised(&short_stroke, 1 << 30);
    assert!(iops(&unstretched)[0] > 1.3 * iops(&small)[0]);
    assert_near(
        "sequential read",
        small.sequential_read_mb_per_s,
        unstretched.sequential_read_mb_per_s,
        0.01,
    );
}

#[test]
fn streams_of_stripe_sized_requests_come_near_the_link_rate() {
    let spec = model("nas-2014");
    for op in [Op::Read, Op::Write] {
        let load = Load {
            len: 65_536,
            // Each disk has to see two of them before it knows the stream.
            requests: 20_000,
            ..sequential(op, 2 << 30)
        };
        let outcome = run_closed(&mut spec.build(2 << 30).unwrap(), &load);
        // One at a time, the round trip comes on top of each 0.56 ms on the wire.
        let bound = 65_536.0 / (65_536.0 / 117.5 + 200.0);
        assert_near("stream", outcome.mb_per_s(TimeScale::ONE), bound, 0.02);
    }
}

#[test]
fn several_streams_share_the_link() {
    let spec = model("nas-2014");
    let load = Load {
        queue_depth: 4,
        ..sequential(Op::Write, 2 << 30)
    };
    let outcome = run_closed(&mut spec.build(2 << 30).unwrap(), &load);
    assert_near("writes", outcome.mb_per_s(TimeScale::ONE), 117.5, 0.02);
}

#[test]
fn the_same_load_runs_the_same_way_twice() {
    let spec = model("nas-2014");
    let load = random_read(1 << 30, 16);
    let run = || run_closed(&mut spec.build(1 << 30).unwrap(), &load);
    assert_eq!(run(), run());
}

/// Small files, so that requests meet.
const SIZE_BYTES: u64 = 64 << 20;

fn any_model() -> impl Strategy<Value = ModelSpec> {
    let link = prop::option::of((1.0..500.0f64, 0.0..2.0f64));
    let queue_depth = prop::sample::select(vec![1u32, 4, 32]);
    let sizes_kb = prop::sample::select(vec![0u64, 128, 512, 1024]);
    (1u32..8, link, queue_depth, sizes_kb.clone(), sizes_kb).prop_map(
        |(disks, link, queue_depth, read_ahead_kb, write_gather_kb)| {
            let mut spec = model("nas-2014");
            spec.disks = disks;
            spec.span_bytes = None;
            spec.disk.queue_depth = queue_depth;
            spec.disk.read_ahead_kb = read_ahead_kb;
            spec.disk.write_gather_kb = write_gather_kb;
            spec.link = link.map(|(mb_per_s, round_trip_ms)| LinkFields {
                mb_per_s,
                round_trip_ms,
            });
            spec
        },
    )
}

/// Requests with the pause before each, nanoseconds.
fn any_requests() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let op = prop::sample::select(vec![Op::Read, Op::Read, Op::Write, Op::Write, Op::Flush]);
    let pause = prop::sample::select(vec![0u64, 1_000, 300_000, 9_000_000]);
    // Half of the requests follow the one before, as streams do.
    let one = (op, pause, 0..SIZE_BYTES, 1..1u64 << 20, any::<bool>());
    prop::collection::vec(one, 1..150).prop_map(|plan| {
        let mut end = 0;
        let requests = plan.into_iter().enumerate();
        requests
            .map(|(tag, (op, pause, offset, len, follows))| {
                let offset = if follows { end } else { offset }.min(SIZE_BYTES - 1);
                let len = len.min(SIZE_BYTES - offset);
                let len = if op == Op::Flush { 0 } else { len };
                end = offset + len;
                let request = Request {
                    tag: tag as u64,
                    op,
                    offset,
                    len,
                    host_len: len,
                };
                (pause, request)
            })
            .collect()
    })
}

/// Submits on time; looks for completions at every event, or only when something is submitted.
fn drive(spec: &ModelSpec, requests: &[(u64, Request)], prompt: bool) -> Vec<Completion> {
    let mut device = spec.build(SIZE_BYTES).unwrap();
    let mut done = Vec::new();
    let mut now = 0;
    for (pause, request) in requests {
        now += pause;
        if prompt {
            while let Some(at) = device.next_event().filter(|&at| at < now) {
                device.advance(at, &mut done);
            }
        }
        device.advance(now, &mut done);
        device.submit(now, *request);
    }
    while let Some(at) = device.next_event() {
        device.advance(if prompt { at } else { at + 1_000_000_000 }, &mut done);
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_request_completes_once_and_after_it_was_made(
        spec in any_model(),
        requests in any_requests(),
    ) {
        let done = drive(&spec, &requests, true);
        let mut tags: Vec<_> = done.iter().map(|completion| completion.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..requests.len() as u64).collect::<Vec<_>>());
        prop_assert!(done.is_sorted_by_key(|completion| completion.at));
        let mut made_at = 0;
        let mut times = vec![0; requests.len()];
        for (pause, request) in &requests {
            made_at += pause;
            times[request.tag as usize] = made_at;
        }
        for completion in &done {
            prop_assert!(completion.at >= times[completion.tag as usize]);
        }
    }

    #[test]
    fn a_tardy_caller_changes_nothing(spec in any_model(), requests in any_requests()) {
        let by_tag = |mut done: Vec<Completion>| {
            done.sort_by_key(|completion| completion.tag);
            done
        };
        let prompt = by_tag(drive(&spec, &requests, true));
        prop_assert_eq!(prompt, by_tag(drive(&spec, &requests, false)));
    }

    #[test]
    fn a_flush_completes_after_the_writes_before_it(
        spec in any_model(),
        requests in any_requests(),
    ) {
        let done = drive(&spec, &requests, true);
        let at = |tag: u64| done.iter().find(|c| c.tag == tag).map(|c| c.at);
        let mut latest_write = None;
        for (_, request) in &requests {
            match request.op {
                Op::Write => latest_write = latest_write.max(at(request.tag)),
                Op::Flush => prop_assert!(at(request.tag) >= latest_write),
                Op::Read => {}
            }
        }
    }

    #[test]
    fn nothing_is_faster_than_the_link(
        spec in any_model(),
        op in prop::sample::select(vec![Op::Read, Op::Write]),
        random in any::<bool>(),
        queue_depth in 1usize..64,
        len in prop::sample::select(vec![8192u64, 65_536, 1 << 20]),
    ) {
        let load = Load { op, len, random, span_bytes: SIZE_BYTES, queue_depth, requests: 300 };
        let outcome = run_closed(&mut spec.build(SIZE_BYTES).unwrap(), &load);
        if let Some(link) = spec.link {
            prop_assert!(outcome.mb_per_s(TimeScale::ONE) <= link.mb_per_s);
        }
    }

    #[test]
    fn no_read_waits_longer_than_age_and_one_full_queue(
        mut spec in any_model(),
        age_ms_max in 1.0..800.0f64,
        queue_depth in 1usize..=32,
    ) {
        spec.disk.age_ms_max = age_ms_max;
        spec.disk.queue_depth = 32;
        spec.link = None;
        let load = Load { requests: 1500, ..random_read(SIZE_BYTES, queue_depth) };
        let outcome = run_closed(&mut spec.build(SIZE_BYTES).unwrap(), &load);
        // The longest service: a full stroke (13.8 ms), a turn (8.4 ms) and two pages.
        let bound_ms = age_ms_max + 32.0 * (13.8 + 8.4 + 0.2);
        prop_assert!(outcome.latency_max as f64 / NANOS_PER_MS <= bound_ms);
    }

    #[test]
    fn a_deeper_queue_is_never_slower(mut spec in any_model()) {
        spec.disk.queue_depth = 32;
        let at_depth = |queue_depth| {
            let load = Load { requests: 4000, ..random_read(1 << 40, queue_depth) };
            run_closed(&mut spec.build(spec.capacity_bytes()).unwrap(), &load).iops(TimeScale::ONE)
        };
        let curve: Vec<f64> = [1, 2, 4, 8, 16, 32].map(at_depth).to_vec();
        // Less the noise of 4000 random addresses.
        prop_assert!(curve.windows(2).all(|pair| pair[1] >= pair[0] * 0.98), "{curve:?}");
    }

    #[test]
    fn a_time_scale_scales_exactly(factor in 0.01..100.0f64) {
        let spec = model("nas-2014");
        let scale = TimeScale::new(factor).unwrap();
        let load = Load { requests: 200, ..random_read(1 << 30, 4) };
        let outcome = run_closed(&mut spec.build(1 << 30).unwrap(), &load);
        let same = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        let one = TimeScale::ONE;
        prop_assert!(same(outcome.iops(scale) * factor, outcome.iops(one)));
        prop_assert!(same(outcome.mb_per_s(scale) * factor, outcome.mb_per_s(one)));
        prop_assert!(same(outcome.latency_ms_mean(scale), outcome.latency_ms_mean(one) * factor));
    }
}
