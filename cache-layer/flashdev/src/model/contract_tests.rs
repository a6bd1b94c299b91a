//! What every modelled device keeps to, whatever it is composed of.

use super::*;
use crate::device::{Completion, Device, Op, Request};
use proptest::prelude::*;

pub(crate) fn built_in_disks(name: &str) -> DisksModel {
    match ModelSpec::load(name).unwrap() {
        ModelSpec::Disks(disks) => disks,
        ModelSpec::Flash(_) => panic!("{name} is a flash"),
    }
}

/// Small files, so that requests meet.
pub(crate) const SIZE_BYTES: u64 = 64 << 20;

fn any_link() -> impl Strategy<Value = Option<LinkFields>> {
    prop::option::of(
        (1.0..500.0f64, 0.0..2.0f64).prop_map(|(mb_per_s, round_trip_ms)| LinkFields {
            mb_per_s,
            round_trip_ms,
        }),
    )
}

pub(crate) fn any_disks() -> impl Strategy<Value = DisksModel> {
    let queue_depth = prop::sample::select(vec![1u32, 4, 32]);
    let sizes_kb = prop::sample::select(vec![0u64, 128, 512, 1024]);
    (1u32..8, any_link(), queue_depth, sizes_kb.clone(), sizes_kb).prop_map(
        |(disks, link, queue_depth, read_ahead_kb, write_gather_kb)| {
            let mut spec = built_in_disks("nas-2014");
            spec.disks = disks;
            spec.span_bytes = None;
            spec.disk.queue_depth = queue_depth;
            spec.disk.read_ahead_kb = read_ahead_kb;
            spec.disk.write_gather_kb = write_gather_kb;
            spec.link = link;
            spec
        },
    )
}

fn any_flash() -> impl Strategy<Value = FlashModel> {
    let latencies_us = (0.0..200.0f64, 0.0..200.0f64);
    let iops = (1000u32..1_000_000, 1000u32..1_000_000);
    let mb_per_s = (50.0..5000.0f64, 50.0..5000.0f64);
    (latencies_us, iops, mb_per_s, any_link()).prop_map(|(latencies_us, iops, mb_per_s, link)| {
        let flash = FlashFields {
            read_latency_us: latencies_us.0,
            write_latency_us: latencies_us.1,
            read_iops: iops.0,
            write_iops: iops.1,
            read_mb_per_s: mb_per_s.0,
            write_mb_per_s: mb_per_s.1,
            ..FlashFields::default()
        };
        FlashModel {
            name: "any".to_owned(),
            flash,
            link,
        }
    })
}

pub(crate) fn any_model() -> impl Strategy<Value = ModelSpec> {
    prop_oneof![
        any_disks().prop_map(ModelSpec::Disks),
        any_flash().prop_map(ModelSpec::Flash),
    ]
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
}
