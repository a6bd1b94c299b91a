#!/usr/bin/env bash
# Performance claims, measured side by side in one sitting; nothing else should run meanwhile.
#
#   scripts/bench.sh           hotset's own engine, on this computer's kernel: about half an hour
#   scripts/bench.sh drivers   TPC-C drivers (hotset, go-tpc, HammerDB): a quarter of an hour
#   scripts/bench.sh kernel    the kernel's dm-cache and bcache, in a virtual machine if need be: as long again
#   scripts/bench.sh simulator the simulator's speed beside libCacheSim's, and by its goals: some minutes
#   scripts/bench.sh predictions  NOPM that one run lets predict of nine others: 20 minutes; with
#                              --small-caches RESULTS, of 120: 8 hours, in slices
#   scripts/bench.sh heat      what counting per region costs, in instructions: some minutes
#   scripts/bench.sh sampling  what reading waits and devices' counters costs of NOPM and of the CPU: 14 minutes
#   scripts/bench.sh watching  what the report by table and the console's overview cost: half an hour
#   scripts/bench.sh hits      what the engine adds to a read of the flash, in µs: some minutes
#   scripts/bench.sh fresh     how well five runs in a row agree, with --fresh and without: 12 minutes
#   scripts/bench.sh models    every device model against itself in virtual time: two hours; goes on where it ended
#
# What follows the name goes to the measurement, such as: sampling --publish reports/published
# REPEATS=5 repeats each arm more often (default 3).
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${REPEATS:-3}
hotset=(./hotset)
run() { "${hotset[@]}" experiment run experiments/demo.toml --set repeats="$repeats" "$@"; }

userspace() {
    run --set tier.kind=userspace
    printf '\ncaches smaller than the databases (1 GiB), warmed in disk order and by heat:\n'
    # 5, 10, 25, 50, 75 % of them
    for cache in 51 102 256 512 768; do
        for order in disk heat; do
            run --set tier.kind=userspace --set "tier.cache=${cache}MiB" --set "warmup.order=$order" \
                --set 'arms=["accelerated"]' --set warmup.probe_hit_ratio=0 --quiet --format csv
        done
    done
    printf '\nthe engine itself:\n'
    hits
    "${hotset[@]}" disk calibrate --machine image
}

kernel() {
    run --set tier.kind=dm-cache
    "${hotset[@]}" disk calibrate --machine uml
    printf '\nwarm-up, restart, flush and a look at the counters:\n'
    .venv/bin/python scripts/bench_life.py
    printf '\na warehouse scan against a hot set:\n'
    .venv/bin/python scripts/bench_scan.py --kernel vm
}

drivers() { .venv/bin/python scripts/bench_drivers.py --repeats "$repeats"; }

simulator() { .venv/bin/python scripts/bench_simulator.py "$@"; }

predictions() { .venv/bin/python scripts/bench_predictions.py "$@"; }

heat() { .venv/bin/python scripts/bench_heat.py; }

sampling() { .venv/bin/python scripts/bench_sampling.py "$@"; }

watching() { .venv/bin/python scripts/bench_watching.py "$@"; }

hits() { .venv/bin/python scripts/bench_tier.py; }

fresh() { .venv/bin/python scripts/bench_fresh.py "$@"; }

models() { .venv/bin/python scripts/bench_models.py "$@"; }

what=${1:-userspace}
shift $(($# > 0))
case "$what" in
    userspace | kernel | drivers | simulator | predictions | heat | sampling | watching | hits | fresh | models) "$what" "$@" ;;
    *)
        echo "usage: scripts/bench.sh [userspace|kernel|drivers|simulator|predictions|heat|sampling|watching|hits|fresh|models]" >&2
        exit 2
        ;;
esac
