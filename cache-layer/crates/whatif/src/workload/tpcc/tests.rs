use super::*;
use std::collections::HashMap;

fn load(warehouses: u32, buffer_bytes: u64) -> Load {
    Load {
        warehouses,
        buffer_bytes,
        per_second: 100.0,
        seconds: 60.0,
        checkpoint_s: 20.0,
        seed: 1,
    }
}

fn requests(load: Load) -> Vec<Request> {
    load.trace().map(Result::unwrap).collect()
}

#[test]
fn a_warehouse_has_some_hundred_megabytes() {
    let (_, pages) = Tables::new(1000);
    let each = f64::from(pages) * PAGE as f64 / 1000.0 / 1e6;
    assert!((80.0..120.0).contains(&each), "{each} MB");
    let (_, pages) = Tables::new(WAREHOUSES_MOST);
    assert!(u64::from(pages) < 1 << 31);
}

#[test]
fn the_same_seed_gives_the_same_trace_in_order_of_time() {
    let (first, other) = (requests(load(3, 8 << 20)), requests(load(3, 8 << 20)));
    assert_eq!(first, other);
    assert!(first.is_sorted_by_key(|request| request.at));
    assert!(first.len() > 20_000, "{}", first.len());
    let seeded = requests(Load {
        seed: 2,
        ..load(3, 8 << 20)
    });
    assert_ne!(first, seeded);
}

#[test]
fn a_larger_buffer_asks_less_and_one_for_all_reads_each_page_once() {
    let reads = |bytes| {
        requests(load(2, bytes))
            .iter()
            .filter(|request| !request.write)
            .count()
    };
    let (small, large) = (reads(4 << 20), reads(64 << 20));
    assert!(large < small * 3 / 4, "{large} {small}");
    let all = requests(load(2, 1 << 30));
    let mut seen = HashMap::new();
    for read in all.iter().filter(|request| !request.write) {
        *seen.entry(read.offset).or_insert(0) += 1;
    }
    assert!(seen.values().all(|&count| count == 1));
    assert!(all.iter().any(|request| request.write), "checkpoints write");
}

/// The law of the specification: NURand's hottest 20 % of the stock get some 85 % of accesses of
/// tuples, and 8 KiB pages dilute that to some 72 %.
#[test]
fn stock_is_as_skewed_as_the_specification_makes_it() {
    let mut dice = Dice::new(5);
    let mut counts = vec![0u32; ITEMS as usize];
    (0..2_000_000).for_each(|_| counts[dice.item() as usize] += 1);
    let share = |counts: &[u32]| {
        let mut sorted = counts.to_vec();
        sorted.sort_unstable_by(|first, other| other.cmp(first));
        let hottest: u32 = sorted[..sorted.len() / 5].iter().sum();
        f64::from(hottest) / 2e6
    };
    let tuples = share(&counts);
    assert!((0.81..0.89).contains(&tuples), "{tuples}");
    let pages: Vec<u32> = counts
        .chunks(STOCKS_A_PAGE as usize)
        .map(|page| page.iter().sum())
        .collect();
    let pages = share(&pages);
    assert!((0.65..0.79).contains(&pages), "{pages}");
}

#[test]
fn the_size_of_the_disk_is_known_beforehand_and_nothing_lies_beyond() {
    for per_second in [1.0, 100.0, 2000.0] {
        let load = Load {
            per_second,
            ..load(1, 4 << 20)
        };
        let end = load.trace().about.end.unwrap();
        let all = requests(load);
        let touched = all.iter().map(Request::end).max().unwrap();
        assert!(touched <= end, "{touched} {end}");
        assert!(end < touched + touched / 4, "{touched} {end}");
        // It was not cut short for that.
        let lasts = all.last().unwrap().at as f64 / NANOS_PER_S;
        assert!(lasts > 0.9 * load.seconds, "{lasts}");
    }
}

#[test]
fn the_database_grows() {
    let (_, pages) = Tables::new(2);
    let all = requests(load(2, 4 << 20));
    let end = all.iter().map(Request::end).max().unwrap();
    assert!(end > u64::from(pages) * PAGE, "{end}");
    assert!(end < (u64::from(pages) + 4096) * PAGE, "{end}");
}
