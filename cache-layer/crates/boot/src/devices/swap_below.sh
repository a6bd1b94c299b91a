# $1, $2: a device and the one below it; $3, $4: their new tables. No I/O in between.
old=$(dmsetup table "$1") && old_below=$(dmsetup table "$2") || exit 1
top=$1 below=$2 new=$3 new_below=$4
use() { printf '%s\n' "$2" | dmsetup reload "$1" && timeout 60 dmsetup resume "$1"; }
back() { use "$below" "$old_below"; use "$top" "$old" || dmsetup resume "$top"; exit 1; }
trap back HUP INT TERM PIPE
timeout 60 dmsetup suspend "$top" || { dmsetup resume "$top"; exit 1; }
use "$below" "$new_below" && use "$top" "$new" || back
