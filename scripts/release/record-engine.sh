#!/usr/bin/env bash
# Records what a build of the cache engine answers, a line of {"request", "replies"} each: the tests
# hold what reads them against engines of every version (cache-layer/tests/data/engine-N.jsonl, N:
# the protocol's version). Root; needs FUSE.
#
#   scripts/release/record-engine.sh FLASHDEV > cache-layer/tests/data/engine-N.jsonl
set -euo pipefail
[ $# = 1 ] || { sed -n '2,7s/^# \?//p' "$0" >&2; exit 2; }
flashdev=$(realpath "$1")
folder=$(mktemp -d)
pid=
end() {
    if [ -n "$pid" ]; then
        kill "$pid" && wait "$pid"
    fi 2> /dev/null || :
    rm -rf "$folder"
}
trap end EXIT
cd "$folder"
mkdir mount
: > log
truncate -s 64M origin flash
"$flashdev" tier --origin origin --flash flash --metadata 5M --cache 16M --policy smq \
    --mode writeback --dirty-target 100 --discard --mount mount --control control > log 2>&1 &
pid=$!
until grep -q '^ready ' log; do
    [ -e "/proc/$pid" ] || { cat log >&2; exit 4; }
    sleep 0.1
done

ask() {
    local replies
    replies=$("$flashdev" ask control "$1" 2>/dev/null | paste -sd, || :)
    printf '{"request": %s, "replies": [%s]}\n' "$1" "$replies"
}
dd if=mount/data of=/dev/null bs=64k count=16 iflag=direct status=none
dd if=/dev/zero of=mount/data bs=64k seek=20 count=6 conv=notrunc oflag=direct status=none
ask '{"warm": {"runs": [[0, 12]]}}'
ask '{"share": {"pinned": [{"name": "table:orders", "runs": [[0, 4]]}], "excluded": [{"name": "table:log", "runs": [[40, 2]]}], "shares": [{"name": "database:shop", "runs": [[4, 16]], "guaranteed": 8, "most": 64}]}}'
ask '{"counters": {}}'
ask '{"counters": {"devices": true}}'
ask '{"resident": {}}'
ask '{"heat": {"extent_blocks": 1}}'
ask '{"regions": {}}'
ask '{"shares": {}}'
ask '{"shared": {}}'
ask '{"read_origin": {"bytes": 1048576}}'
ask '{"flush": {}}'
ask '{"unheard_of": {}}'
ask '{"counters": {"unheard_of": true}}'
