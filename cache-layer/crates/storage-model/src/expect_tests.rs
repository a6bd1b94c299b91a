use super::*;
use crate::spec::contract_tests::{SIZE_BYTES, any_disks, any_model, model as model_of, striped};
use crate::spec::{DeviceSpec, HddFields, Placement};
use proptest::prelude::*;

fn model(name: &str) -> ModelSpec {
    ModelSpec::load(name).unwrap()
}

fn promised(spec: &ModelSpec, size_bytes: u64) -> Expectation {
    expect(spec, size_bytes, size_bytes).unwrap()
}

fn iops(expectation: &Expectation) -> Vec<f64> {
    let points = &expectation.random_read_8k;
    points.iter().map(|point| point.iops).collect()
}

fn assert_near(what: &str, measured: f64, known: f64, share: f64) {
    assert!(
        (measured / known - 1.0).abs() <= share,
        "{what}: {measured:.1}, not within {:.0} % of {known}",
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
    let spec = model_of(DeviceSpec::Hdd(HddFields {
        queue_depth: 1,
        ..HddFields::default()
    }));
    let whole = promised(&spec, 1_000_000_000_000);
    assert_near("queue depth 32", iops(&whole)[3], 82.0, 0.05);
}

#[test]
fn the_nas_is_as_fast_as_the_reference_was() {
    let nas = promised(&model("nas-2014"), 2 << 30);
    for (measured, known) in iops(&nas).into_iter().zip([126.0, 383.0, 850.0, 1117.0]) {
        assert_near("random read", measured, known, 0.1);
    }
    assert_near("read", nas.sequential_read_mb_per_s, 116.0, 0.02);
    assert_near("write", nas.sequential_write_mb_per_s, 116.0, 0.02);
}

#[test]
fn the_card_is_as_fast_as_published() {
    let pcie = promised(&model("pcie-flash-2014"), 800_000_000_000);
    // min(queue depth / 90 us, 90,000)
    let known = [11_111.0, 44_444.0, 90_000.0, 90_000.0];
    for (measured, known) in iops(&pcie).into_iter().zip(known) {
        assert_near("random read", measured, known, 0.002);
    }
    assert_near("random write", pcie.random_write_8k_ms, 0.030, 0.002);
    // One at a time, the latency comes on top of the transfer; several fill the 2000 MB/s.
    assert_near("read", pcie.sequential_read_mb_per_s, 1738.0, 0.002);
    assert_near("write", pcie.sequential_write_mb_per_s, 987.0, 0.002);
    assert_near(
        "4 reads",
        streamed("pcie-flash-2014", Op::Read),
        2000.0,
        0.002,
    );
    assert_near(
        "4 writes",
        streamed("pcie-flash-2014", Op::Write),
        1000.0,
        0.002,
    );
}

#[test]
fn the_sata_drive_is_as_fast_as_published() {
    let drive = promised(&model("dc500m"), 960_000_000_000);
    // 8 KiB at 555 MB/s are 14.8 us, 4.6 us more than the 98,000th part of a second.
    let known = [8027.0, 32_110.0, 67_750.0, 67_750.0];
    for (measured, known) in iops(&drive).into_iter().zip(known) {
        assert_near("random read", measured, known, 0.002);
    }
    assert_near("4 reads", streamed("dc500m", Op::Read), 555.0, 0.002);
    assert_near("4 writes", streamed("dc500m", Op::Write), 520.0, 0.002);
    let small = Load {
        len: 4096,
        ..random(Op::Read, 1 << 30, 32)
    };
    for (op, known) in [(Op::Read, 98_000.0), (Op::Write, 70_000.0)] {
        let outcome = run_closed(
            &mut model("dc500m").build(1 << 30).unwrap(),
            &Load { op, ..small },
        );
        assert_near("random 4 KiB", outcome.iops(), known, 0.002);
    }
}

/// MB/s of 1 MiB requests, four at a time.
fn streamed(name: &str, op: Op) -> f64 {
    let load = Load {
        queue_depth: 4,
        ..sequential(op, 2 << 30)
    };
    run_closed(&mut model(name).build(2 << 30).unwrap(), &load).mb_per_s()
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
        assert_near("stream", outcome.mb_per_s(), bound, 0.02);
    }
}

#[test]
fn several_streams_share_the_link() {
    assert_near("writes", streamed("nas-2014", Op::Write), 117.5, 0.02);
}

#[test]
fn the_same_load_runs_the_same_way_twice() {
    let spec = model("nas-2014");
    let load = random(Op::Read, 1 << 30, 16);
    let run = || run_closed(&mut spec.build(1 << 30).unwrap(), &load);
    assert_eq!(run(), run());
}

#[test]
fn a_timed_load_is_the_closed_load_of_that_time() {
    let spec = model("dc500m");
    let load = TimedLoad {
        reads_percent: 100,
        len: 4096,
        random: true,
        span_bytes: 1 << 30,
        queue_depth: 32,
        duration: 2 * NANOS_PER_S as Nanos,
    };
    let run = |load| run_timed(&mut spec.build(1 << 30).unwrap(), &load);
    let reads = run(load);
    assert_near("reads", reads.iops(), 98_000.0, 0.002);
    assert!(reads.elapsed >= load.duration);
    assert!(reads.elapsed < load.duration + 2_000_000);
    let writes = run(TimedLoad {
        reads_percent: 0,
        ..load
    });
    assert_near("writes", writes.iops(), 70_000.0, 0.002);
    // Together neither is held up by more than its share.
    let mixed = run(TimedLoad {
        reads_percent: 70,
        ..load
    });
    assert!(mixed.iops() > writes.iops());
    assert_eq!(mixed.bytes, mixed.requests as u64 * 4096);
}

#[test]
fn a_mixed_stream_reads_and_writes_one_after_the_other_each_on_its_own() {
    let spec = model("hdd-7200");
    let load = |random| TimedLoad {
        reads_percent: 70,
        len: 1 << 20,
        random,
        span_bytes: 1 << 30,
        queue_depth: 8,
        duration: 5 * NANOS_PER_S as Nanos,
    };
    let rate = |random| {
        let outcome = run_timed(&mut spec.build(1 << 30).unwrap(), &load(random));
        outcome.mb_per_s()
    };
    assert!(
        rate(false) > 1.2 * rate(true),
        "{} {}",
        rate(false),
        rate(true)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

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
        if let DeviceSpec::Linked(linked) = spec.device {
            prop_assert!(outcome.mb_per_s() <= linked.link.mb_per_s);
        }
    }

    #[test]
    fn no_read_waits_longer_than_age_and_one_full_queue(
        (count, mut hdd, _) in any_disks(),
        age_ms_max in 1.0..800.0f64,
        queue_depth in 1usize..=32,
    ) {
        hdd.age_ms_max = age_ms_max;
        hdd.queue_depth = 32;
        let spec = striped(count, hdd, None);
        let load = Load { requests: 1500, ..random(Op::Read, SIZE_BYTES, queue_depth) };
        let outcome = run_closed(&mut spec.build(SIZE_BYTES).unwrap(), &load);
        // The longest service: a full stroke (13.8 ms), a turn (8.4 ms) and two pages.
        let bound_ms = age_ms_max + 32.0 * (13.8 + 8.4 + 0.3);
        prop_assert!(outcome.latency_max as f64 / NANOS_PER_MS <= bound_ms);
    }

    /// Little's law: what is outstanding = throughput times latency.
    #[test]
    fn the_queue_is_as_deep_as_throughput_and_latency_say(
        spec in any_model(),
        op in prop::sample::select(vec![Op::Read, Op::Write]),
        queue_depth in 1usize..=32,
    ) {
        let load = Load { op, requests: 12_000, ..random(Op::Read, SIZE_BYTES, queue_depth) };
        let outcome = run_closed(&mut spec.build(SIZE_BYTES).unwrap(), &load);
        let outstanding = outcome.latency_sum as f64 / outcome.elapsed as f64;
        // The queue is full until the last request is in it, and that is over after the longest
        // latency at most.
        let bound = queue_depth as f64;
        let full = 1.0 - outcome.latency_max as f64 / outcome.elapsed as f64;
        prop_assert!(outstanding <= bound && outstanding >= 0.999 * full * bound, "{outstanding}");
    }

    #[test]
    fn a_deeper_queue_is_never_slower((count, mut hdd, link) in any_disks()) {
        hdd.queue_depth = 32;
        let spec = striped(count, hdd, link);
        let at_depth = |queue_depth| {
            let load = Load { requests: 4000, ..random(Op::Read, 1 << 40, queue_depth) };
            run_closed(&mut spec.build(spec.capacity_bytes()).unwrap(), &load).iops()
        };
        let curve: Vec<f64> = [1, 2, 4, 8, 16, 32].map(at_depth).to_vec();
        // Less the noise of 4000 random addresses.
        prop_assert!(curve.windows(2).all(|pair| pair[1] >= pair[0] * 0.98), "{curve:?}");
    }
}
