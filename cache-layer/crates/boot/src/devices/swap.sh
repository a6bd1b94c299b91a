# $1: a device; standard input: its new table. `dmsetup resume` suspends, swaps the tables and resumes in one call
# (do_resume, drivers/md/dm-ioctl.c). Its wait for I/O under way ends with a signal, and then nothing happened.
old=$(dmsetup table "$1") || exit 1
load() { printf '%s\n' "$1" | dmsetup reload "$name"; }
name=$1
trap 'dmsetup resume "$name"; exit 1' HUP INT TERM PIPE
load "$(cat)" || exit 1
timeout 120 dmsetup resume "$name" && exit 0
load "$old"; dmsetup resume "$name"; exit 1
