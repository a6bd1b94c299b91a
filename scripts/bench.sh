#!/usr/bin/env bash
# Performance claims, measured side by side in one sitting: the demo's three arms, interleaved and
# repeated, once at real time and once with the storage slowed as much as the CPU is; then the
# modelled disk against its model. Takes about half an hour. Nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${REPEATS:-3}
hotset=(uv run --no-sync hotset)

for scale in 1 '"auto"'; do
    "${hotset[@]}" experiment run experiments/demo.toml --set repeats="$repeats" --set "time_scale=$scale"
done
"${hotset[@]}" disk calibrate
