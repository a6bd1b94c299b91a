"""What keeps the cache engine of a disk at work: a shell script on its machine, and a systemd unit
that calls it where systemd runs the machine; elsewhere the script watches over the engine itself.

The engine serves the disk as a block device where the kernel's ublk can be used, and as a file of
FUSE's elsewhere, over which the script puts a loop device. It chooses at each start, and says what
it chose in the file ``front``.

The script stays after hotset has ended, and needs nothing of hotset's but ``hotset-engine``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from hotset.block.loop import FOLDER as DEVICES
from hotset.block.loop import SEQUENCE, TELL_SYSTEMD

RUNTIME = PurePosixPath("/run/hotset/engine")
SCRIPTS = PurePosixPath("/etc/hotset/engine")
GIVEN_UP = PurePosixPath("/etc/hotset/given-up")
UNITS = PurePosixPath("/etc/systemd/system")
_START_LIMIT_S = 60
_RESTART_LIMIT_S = 60
"""For how long after its end an engine is started again without a question."""
_MARK_LIMIT_S = 60
_REMOVAL_LIMIT_S = 60
"""For how long the kernel is waited for: it removes a device once what is under way has ended."""


def control_of(disk: str) -> PurePosixPath:
    """The engine's control socket."""
    return RUNTIME / disk / "control"


def witness_of(disk: str) -> PurePosixPath:
    """Where an engine says, until the computer stops, that both devices have all it wrote."""
    return RUNTIME / disk / "control.witness"


def log_of(disk: str) -> PurePosixPath:
    return RUNTIME / disk / "log"


def script_of(disk: str) -> PurePosixPath:
    return SCRIPTS / f"{disk}.sh"


def shares_of(disk: str) -> PurePosixPath:
    """Where the engine keeps what is pinned, excluded and shared."""
    return SCRIPTS / f"{disk}.shares.json"


def refill_of(disk: str) -> PurePosixPath:
    """Where it is noted which blocks the cache held before it was emptied; the engine fetches them
    again and removes it."""
    return SCRIPTS / f"{disk}.refill"


def unit_of(disk: str) -> PurePosixPath:
    return UNITS / f"hotset-engine-{disk}.service"


def given_up_of(identity: str) -> PurePosixPath:
    """What the engine leaves when it gave its cache up; see ``hotset-engine tier --given-up``."""
    return GIVEN_UP / identity


def script(
    disk: str,
    identity: str,
    origin: PurePosixPath,
    engine: Sequence[str],
    mark: Sequence[str],
) -> str:
    """The script.

    :param engine: the engine's command line, mount and control socket left out.
    :param mark: the command that puts down on the flash what becomes of the disk, its word left
        out.
    """
    return _SCRIPT.format(
        disk=disk,
        engine=shlex.join(engine),
        mark=shlex.join(mark),
        program=shlex.quote(engine[0]),
        origin=shlex.quote(str(origin)),
        origin_id=identity.replace("-", ""),
        folder=RUNTIME / disk,
        devices=DEVICES,
        sequence=SEQUENCE,
        tell_systemd=TELL_SYSTEMD,
        given_up=given_up_of(identity),
        given_up_folder=GIVEN_UP,
        unit=unit_of(disk).name,
        alive=_alive(disk),
        polls=_START_LIMIT_S * 20,
        restart_limit=_RESTART_LIMIT_S,
        removal_polls=_REMOVAL_LIMIT_S * 20,
        mark_limit=_MARK_LIMIT_S,
    )


def alive(disk: str) -> str:
    """A script that succeeds where the engine runs, whichever version started it: the script that
    did may know no word for it."""
    return f"folder={RUNTIME / disk}\n{_alive(disk)}alive\n"


def _alive(disk: str) -> str:
    return _ALIVE.format(unit=unit_of(disk).name)


_ALIVE = """\
# The engine's child before it is the engine does not count: its number is read anew.
is_engine() {{
    tr '\\0' '\\n' 2> /dev/null < "/proc/$1/cmdline" | grep -qxF "$folder/control"
}}
# Whether it runs; one that does not answer does.
alive() {{
    if [ -d /run/systemd/system ]; then
        case $(systemctl is-active {unit}) in inactive|failed) return 1 ;; esac
        return 0
    fi
    read -r engine 2> /dev/null < "$folder/pid" && is_engine "$engine"
}}
"""


# A loop device whose engine has died answers every request with an error, for as long as somebody
# has it open: that is what a file system on it is to see. The engine that comes next gets another.
# A ublk device has its requests wait, and the engine that is started again within the limit takes
# it over; where none is, it is removed, and they get errors.
_SCRIPT = """\
#!/bin/sh
# Written by hotset: the cache engine of disk {disk}. `hotset tier activate {disk}` writes it anew.
set -u
# Of what it makes nothing is other users'.
umask 077
folder={folder}
mount=$folder/mount log=$folder/log device={devices}/{disk}

# Whoever starts it has looked whether the origin was written to, or it has only just ended. By
# systemctl alone nobody has: what the flash holds would overwrite what was written meanwhile.
may_run() {{
    [ -d /run/systemd/system ] || return 0
    ! rm "$folder/may-run" 2> /dev/null || return 0
    has_just_ended
}}
has_just_ended() {{
    read -r since 2> /dev/null < "$folder/ended-at" || return 1
    since=$(($(date +%s) - since)); [ $since -ge 0 ] && [ $since -le {restart_limit} ]
}}
run() {{
    # With words: only a look.
    [ $# -gt 0 ] || may_run || {{
        echo "hotset-engine: not started: nobody has looked whether the disk was written to since" \
            "the engine ended: hotset tier activate {disk}" >&2
        exit 2
    }}
    mkdir -p "$mount" {given_up_folder}
    [ -c /dev/ublk-control ] || modprobe -q ublk_drv 2> /dev/null
    # Given up: the origin has all, what is left on the flash is old.
    [ ! -e {given_up} ] || set -- "$@" --discard
    # Beside the command, which hotset-boot writes anew.
    set -- --front "$folder/front" "$@"
    exec {engine} --mount "$mount" --control "$folder/control" "$@"
}}
{sequence}
{tell_systemd}
# Those over what is served, but for those that go when whoever has them open closes them: by the
# mount's device number as long as it stands, which the kernel no longer tells when the engine is
# dead, and by what was noted. No path would do, since containers of one kernel see each other's
# loop devices and may have disks of one name; nor would a mount's number of before, which the next
# mount of whomever gets.
loops() {{
    over=$(findmnt --noheadings --output MAJ:MIN --mountpoint "$mount" | tail -n 1)
    read -r noted number 2> /dev/null < "$folder/attached" || noted= number=
    for at in /sys/block/loop*/loop; do
        # What is behind the others would be asked as well, and may be an engine that hangs.
        read -r file 2> /dev/null < "$at/backing_file" || continue
        loop=${{at%/loop}} loop=/dev/${{loop##*/}}
        case $loop,$file in "$noted",*|*,"$mount/data"|*,/data) ;; *) continue ;; esac
        [ "$(cat "$at/autoclear")" = 0 ] || continue
        behind=$(losetup --noheadings --output BACK-MAJ:MIN "$loop" | tr -d ' ')
        [ "${{behind:-dead}}" != "$over" ] || {{ echo "$loop"; continue; }}
        [ -z "$number" ] || [ "$loop" != "$noted" ] ||
            [ "$(sequence "$loop")" != "$number" ] || echo "$loop"
    done
}}
# A ublk device that waits for its engine is not.
attached() {{
    read -r noted number 2> /dev/null < "$folder/attached" || return 1
    [ "$(readlink "$device") $(sequence "$noted")" = "$noted $number" ] || return 1
    case $noted in /dev/ublkb*) [ ! -e "$folder/ended-at" ] ;; esac
}}
# One that takes its time is at work (124: it did not answer yet).
works() {{
    attached || return 1
    case $noted in /dev/ublkb*) alive; return ;; esac
    timeout 10 head -c 0 "$mount/data" 2> /dev/null || [ $? = 124 ]
}}
# By what it is served; fails as long as it is not.
front() {{
    read -r front served 2> /dev/null < "$folder/front" || return 1
    case $front in
        ublk) [ -b "$served" ] ;;
        *) [ -e "$mount/data" ] ;;
    esac
}}
# On the flash, for good: the engine has ended while the computer goes on, or is at work again. One
# at a time: whoever takes the disk down puts down how it was left, after this.
mark() {{
    mkdir -p "$folder"
    (
        flock 8
        timeout {mark_limit} {mark} "$1" >> "$log" 2>&1
    ) 8> "$folder/marking" 9>&-
}}
attach() {{
    (umask 022; mkdir -p {devices})
    front || return 1
    mark resumed
    case $front in
        ublk) shown=$served ;;
        *) shown=$(losetup --find --show --partscan --direct-io=on "$mount/data") || return 1 ;;
    esac
    # As much is read ahead of it as of its origin, where that is a device.
    ahead=$(timeout 10 blockdev --getra {origin} 2> /dev/null) && blockdev --setra "$ahead" "$shown"
    echo "$shown $(sequence "$shown")" > "$folder/attached"
    ln -sfn "$shown" "$device"
    rm -f "$folder/ended-at"
    tell_systemd "$shown"
}}
# In the background: the kernel waits for what is under way, however long that takes. Fails if the
# disk had a ublk device, and may still have it.
remove_device() {{
    [ -c /dev/ublk-control ] || return 0
    {program} remove-device --origin-id {origin_id} 9>&- &
    n=0
    while [ -e "/proc/$!/exe" ] && [ $n -lt {removal_polls} ]; do n=$((n + 1)); sleep 0.05; done
    [ -e "/proc/$!/exe" ] || ! wait $! || return 0
    read -r noted number 2> /dev/null < "$folder/attached" || return 0
    case $noted in /dev/ublkb*) ;; *) return 0 ;; esac
    echo "hotset-engine: $noted is not removed: requests to it are under way, or it is in use" >&2
    return 1
}}
detach() {{
    rm -f "$device"
    [ -d "$folder" ] || return 0
    # One at a time: what another has just detached is somebody else's by now.
    (
        flock 9
        for loop in $(loops); do losetup --detach "$loop"; tell_systemd "$loop"; done
        remove_device && rm -f "$folder/attached"
    ) 9> "$folder/detaching"
}}
release() {{
    # Told by systemd, of an engine that is started again.
    case ${{SERVICE_RESULT-}}-${{EXIT_STATUS-}} in
        # Before a start.
        -*) ;;
        # One that was told to end or refuses is not; nobody is to wait for it.
        success-*|exit-code-2) rm -f "$folder/ended-at"; mark ended ;;
        *) date +%s > "$folder/ended-at"; mark ended ;;
    esac
    # The engine that comes takes a ublk device over.
    case $(cat "$folder/attached" 2> /dev/null) in
        /dev/ublkb*) has_just_ended || detach ;;
        *) detach ;;
    esac
    umount -l "$mount" 2> /dev/null
    rm -f "$folder/control" "$folder/front"
}}
# Says how many seconds ago the engine ended, if it is about to be started again, and whether
# requests wait for that.
restarting() {{
    read -r since 2> /dev/null < "$folder/ended-at" || return 1
    if [ -d /run/systemd/system ]; then
        case $(systemctl is-active {unit}) in activating|deactivating) ;; *) return 1 ;; esac
    else
        read -r watching 2> /dev/null < "$folder/supervisor" || return 1
        grep -qzx supervise "/proc/$watching/cmdline" 2> /dev/null || return 1
    fi
    waits=$(cut -d ' ' -f 1 "$folder/attached" 2> /dev/null)
    case $waits in /dev/ublkb*) waits=waits ;; *) waits= ;; esac
    echo $(($(date +%s) - since)) $waits
}}
check() {{
    run --check
}}
supervise() {{
    echo $$ > "$folder/supervisor"
    while :; do
        release
        (run) >> "$log" 2>&1 &
        engine=$! ready=
        echo "$engine" > "$folder/pid"
        until front || [ ! -e "/proc/$engine/exe" ]; do sleep 0.05; done
        ! front || {{ attach >> "$log" 2>&1 && ready=1; }}
        wait "$engine"
        ended=$?
        # Else whoever stops it does.
        [ -e "$folder/stop" ] || mark ended
        # 0: it was told to end, 2: it refuses what it was given.
        case $ended in 0|2) ready= ;; esac
        rm -f "$folder/ended-at"
        [ -z "$ready" ] || date +%s > "$folder/ended-at"
        release
        [ -n "$ready" ] || break
        echo "the engine ended with code $ended: it is started again" >> "$log"
        sleep 1
        [ ! -e "$folder/stop" ] || break
    done
    rm -f "$folder/pid" "$folder/supervisor" "$folder/ended-at"
    echo "$ended" > "$folder/ended"
}}
start() {{
    ! works || return 0
    mkdir -p "$folder"
    rm -f "$folder/ended" "$folder/stop" "$folder/ended-at"
    : > "$log"
    if [ -d /run/systemd/system ]; then
        systemctl reset-failed {unit} 2> /dev/null
        : > "$folder/may-run"
        systemctl start {unit}
        set -- $?
        rm -f "$folder/may-run"
        return $1
    fi
    # Without the locks of whoever started it.
    setsid sh "$0" supervise < /dev/null > /dev/null 2>&1 \\
        3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
    n=0
    until works; do
        [ ! -e "$folder/ended" ] || return 1
        n=$((n + 1)); [ $n -lt {polls} ] || return 1
        sleep 0.05
    done
}}
{alive}\
stop() {{
    if [ -d /run/systemd/system ]; then
        systemctl stop {unit}
        set -- $?
        # One that is not started again, as it ended too often, leaves its device.
        detach || return 1
        return $1
    fi
    detach
    # Whoever watches over it tidies up, unless that was killed as well, and starts no other.
    [ ! -d "$folder" ] || : > "$folder/stop"
    n=0
    while read -r engine 2> /dev/null < "$folder/pid" && [ $n -lt 40 ]; do
        ! is_engine "$engine" || kill -TERM "$engine" 2> /dev/null
        while is_engine "$engine"; do sleep 0.05; done
        n=$((n + 1)); sleep 0.05
    done
    [ ! -d "$folder" ] || mark ended
    release
    rm -f "$folder/pid"
    detach
}}

"$1"
"""


def unit(disk: str) -> str:
    """The systemd unit: not enabled, since what activates the disk at boot looks first whether the
    cache may be used, and then starts it."""
    script = f"/bin/sh {script_of(disk)}"
    return f"""\
# Written by hotset; `hotset tier activate {disk}` writes it anew.
[Unit]
Description=hotset cache engine of disk {disk}
DefaultDependencies=no
# It lives as long as its users: what isolates a target, as the end of emergency mode does, does not
# ask who has the disk mounted.
IgnoreOnIsolate=yes
# While it is down its disk gives errors, so it is given up late: several upgrades in a row may each
# restart it, and what ends it may pass.
StartLimitIntervalSec=600
StartLimitBurst=60

[Service]
Type=notify
ExecStartPre=/bin/mkdir -p {RUNTIME / disk}/mount
ExecStartPre={script} release
ExecStart={script} run
ExecStartPost={script} attach
ExecStop=-{script} detach
ExecStopPost={script} release
Restart=on-failure
RestartSec=1
RestartPreventExitStatus=2
WatchdogSec=60
TimeoutStartSec=300
TimeoutStopSec=900
OOMScoreAdjust=-900
UMask=0077
StandardOutput=append:{log_of(disk)}
StandardError=inherit
"""
