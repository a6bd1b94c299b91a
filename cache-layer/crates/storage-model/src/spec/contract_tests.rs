//! What every modelled device keeps to, whatever it is composed of.

use super::*;
use crate::device::raid::geometry::Level;
use crate::device::{Completion, Device, Op, Request};
use cache_core::engine::Mode;
use cache_core::policy::PolicyKind;
use proptest::prelude::*;

/// Small files, so that requests meet.
pub(crate) const SIZE_BYTES: u64 = 64 << 20;

pub(crate) fn model(device: DeviceSpec) -> ModelSpec {
    ModelSpec {
        name: "any".to_owned(),
        title: String::new(),
        device,
        placement: Placement::Spread,
        span_bytes: None,
        sources: BTreeMap::new(),
    }
}

pub(crate) fn any_link() -> impl Strategy<Value = Option<LinkFields>> {
    let depth = prop::option::of(1u32..64);
    prop::option::of(
        (
            1.0..500.0f64,
            0.0..2.0f64,
            0.0..100.0f64,
            depth,
            any::<bool>(),
        )
            .prop_map(
                |(mb_per_s, round_trip_ms, command_us, session_depth, cut_through)| LinkFields {
                    mb_per_s,
                    round_trip_ms,
                    command_us,
                    session_depth,
                    cut_through,
                },
            ),
    )
}

pub(crate) fn linked(link: Option<LinkFields>, device: DeviceSpec) -> DeviceSpec {
    match link {
        None => device,
        Some(link) => DeviceSpec::Linked(Box::new(LinkedFields { link, device })),
    }
}

pub(crate) fn array(level: Level, count: usize, device: DeviceSpec) -> RaidFields {
    RaidFields {
        level,
        members: Members::Alike { count, device },
        chunk_bytes: 65_536,
        spares: 0,
        stripe_cache_kb: 1024,
        rebuild_mb_per_s_min: 10.0,
        rebuild_mb_per_s_max: 200.0,
        controller: None,
    }
}

pub(crate) fn any_hdd() -> impl Strategy<Value = HddFields> {
    let queue_depth = prop::sample::select(vec![1u32, 4, 32]);
    let sizes_kb = prop::sample::select(vec![0u64, 128, 512, 1024]);
    let cache_kb = prop::sample::select(vec![0u64, 0, 256, 4096]);
    let inner = prop::option::of(60.0..150.0f64);
    (
        queue_depth,
        sizes_kb.clone(),
        sizes_kb,
        cache_kb,
        inner,
        0.0..300.0f64,
    )
        .prop_map(
            |(queue_depth, read_ahead_kb, write_gather_kb, write_cache_kb, inner, overhead)| {
                HddFields {
                    queue_depth,
                    read_ahead_kb,
                    write_gather_kb,
                    write_cache_kb,
                    inner_mb_per_s: inner,
                    zones: if inner.is_some() { 12 } else { 1 },
                    command_overhead_us: overhead,
                    ..HddFields::default()
                }
            },
        )
}

/// Hard disks in RAID 0, as the NAS of 2014 has them.
pub(crate) fn any_disks() -> impl Strategy<Value = (usize, HddFields, Option<LinkFields>)> {
    (1usize..8, any_hdd(), any_link())
}

pub(crate) fn striped(count: usize, hdd: HddFields, link: Option<LinkFields>) -> ModelSpec {
    let disks = array(Level::Raid0, count, DeviceSpec::Hdd(hdd));
    model(linked(link, DeviceSpec::Raid(Box::new(disks))))
}

fn any_ssd() -> impl Strategy<Value = SsdFields> {
    let latencies_us = (0.0..200.0f64, 0.0..200.0f64);
    let iops = (1000u32..1_000_000, 1000u32..1_000_000);
    let mb_per_s = (50.0..5000.0f64, 50.0..5000.0f64);
    let nand = prop::option::of(Just(NandFields::default()));
    (latencies_us, iops, mb_per_s, any::<bool>(), nand).prop_map(
        |(latencies_us, iops, mb_per_s, power_loss_protection, nand)| SsdFields {
            read_latency_us: latencies_us.0 + 60.0,
            write_latency_us: latencies_us.1,
            read_iops: iops.0,
            write_iops: iops.1,
            read_mb_per_s: mb_per_s.0,
            write_mb_per_s: mb_per_s.1,
            power_loss_protection,
            nand,
            ..SsdFields::default()
        },
    )
}

fn any_array() -> impl Strategy<Value = RaidFields> {
    let levels = vec![
        Level::Raid0,
        Level::Raid1,
        Level::Raid10,
        Level::Raid5,
        Level::Raid6,
        Level::F1,
    ];
    let member = prop_oneof![
        any_hdd().prop_map(DeviceSpec::Hdd),
        any_ssd().prop_map(DeviceSpec::Ssd)
    ];
    let controller = prop::option::of((any::<bool>(), 64u64..4096));
    (prop::sample::select(levels), 0usize..3, member, controller).prop_map(
        |(level, more, device, controller)| {
            let count = level.members_min() + 2 * more;
            RaidFields {
                controller: controller.map(|(battery, cache_kb)| ControllerFields {
                    cache_kb,
                    battery,
                    latency_us: 20.0,
                    depth: 8,
                    gather_ms: 5.0,
                    mb_per_s: 5000.0,
                    miss_us: 30.0,
                }),
                ..array(level, count, device)
            }
        },
    )
}

/// With a cache that holds a part of the file, or all of it.
fn any_hybrid() -> impl Strategy<Value = HybridFields> {
    let policies = vec![PolicyKind::Hotset, PolicyKind::Smq, PolicyKind::Lru];
    let mode = prop_oneof![Just(Mode::Writeback), Just(Mode::Writethrough)];
    let cache_bytes = prop_oneof![1u64 << 20..8 << 20, Just(SIZE_BYTES)];
    let policy = prop::sample::select(policies);
    (any_hdd(), any_ssd(), cache_bytes, policy, mode).prop_map(
        |(hdd, ssd, cache_bytes, policy, mode)| HybridFields {
            // Larger by the stretch of a small file.
            cache_bytes: cache_bytes * (hdd.capacity_bytes / SIZE_BYTES),
            disk: DeviceSpec::Hdd(hdd),
            flash: DeviceSpec::Ssd(ssd),
            block_kb: 64,
            policy,
            mode,
        },
    )
}

pub(crate) fn any_model() -> impl Strategy<Value = ModelSpec> {
    let device = prop_oneof![
        any_hdd().prop_map(DeviceSpec::Hdd),
        any_ssd().prop_map(DeviceSpec::Ssd),
        any_array().prop_map(|raid| DeviceSpec::Raid(Box::new(raid))),
        any_array().prop_map(|raid| DeviceSpec::Raid(Box::new(raid))),
        any_hybrid().prop_map(|hybrid| DeviceSpec::Hybrid(Box::new(hybrid))),
    ];
    (any_link(), device).prop_map(|(link, device)| model(linked(link, device)))
}

/// Requests with the pause before each, nanoseconds.
fn any_requests() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let op = prop::sample::select(vec![
        Op::Read,
        Op::Read,
        Op::Write,
        Op::Write,
        Op::Flush,
        Op::Discard,
    ]);
    let pause = prop::sample::select(vec![0u64, 1_000, 300_000, 9_000_000]);
    // Half of the requests follow the one before, as streams do; traces have empty ones, too.
    let len = prop_oneof![9 => 1..1u64 << 20, 1 => Just(0)];
    let request = (op, pause, 0..SIZE_BYTES, len, any::<bool>());
    prop::collection::vec(request, 1..150).prop_map(|plan| {
        let mut end = 0;
        let requests = plan.into_iter().enumerate();
        requests
            .map(|(tag, (op, pause, offset, len, follows))| {
                let offset = if follows { end } else { offset }.min(SIZE_BYTES - 1);
                let len = len.min(SIZE_BYTES - offset);
                let len = if op == Op::Flush { 0 } else { len };
                end = offset + len;
                (pause, Request::whole(tag as u64, op, offset, len))
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
    #![proptest_config(ProptestConfig::with_cases(1000))]

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
            prop_assert!(!completion.failed);
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
                // An empty one has nothing to lose.
                Op::Write if request.len > 0 => latest_write = latest_write.max(at(request.tag)),
                Op::Write => {}
                Op::Flush => prop_assert!(at(request.tag) >= latest_write),
                Op::Read | Op::Discard => {}
            }
        }
    }
}
