#!/bin/sh
# Written by hotset: the cache engine of disk @DISK@. `hotset tier activate @DISK@` writes it anew.
set -u
# Of what it makes nothing is other users'.
umask 077
folder=/run/hotset/engine/@DISK@
mount=$folder/mount log=$folder/log device=/dev/hotset/@DISK@

# Whoever starts it has looked whether the origin was written to, or it has only just ended. By
# systemctl alone nobody has: what the flash holds would overwrite what was written meanwhile.
may_run() {
    [ -d /run/systemd/system ] || return 0
    ! rm "$folder/may-run" 2> /dev/null || return 0
    has_just_ended
}
has_just_ended() {
    read -r since 2> /dev/null < "$folder/ended-at" || return 1
    since=$(($(moment) - since)); [ $since -ge 0 ] && [ $since -le 60 ]
}
# Seconds since the computer started: a clock that is set makes nothing earlier or later.
moment() {
    cut -d . -f 1 /proc/uptime
}
run() {
    # With words: only a look.
    [ $# -gt 0 ] || may_run || {
        echo "hotset-engine: not started: nobody has looked whether the disk was written to since" \
            "the engine ended: hotset tier activate @DISK@" >&2
        exit 2
    }
    mkdir -p "$mount" /etc/hotset/given-up
    [ -c /dev/ublk-control ] || modprobe -q ublk_drv 2> /dev/null
    # Given up: the origin has all, what is left on the flash is old.
    [ ! -e /etc/hotset/given-up/@ID@ ] || set -- "$@" --discard
    exec @ENGINE@ --mount "$mount" --control "$folder/control" --front "$folder/front" "$@"
}
sequence() {
    cat "/sys/class/block/${1#/dev/}/diskseq" 2> /dev/null
}
tell_systemd() {
    [ ! -d /run/systemd/system ] || timeout 30 udevadm trigger --action=change --settle "$1" ||
        :
} 2> /dev/null
# Those over what is served, but for those that go when whoever has them open closes them: by the
# mount's device number as long as it stands, which the kernel no longer tells when the engine is
# dead, and by what was noted. No path would do, since containers of one kernel see each other's
# loop devices and may have disks of one name; nor would a mount's number of before, which the next
# mount of whomever gets.
loops() {
    over=$(findmnt --noheadings --output MAJ:MIN --mountpoint "$mount" | tail -n 1 | tr -d ' ')
    read -r noted number 2> /dev/null < "$folder/attached" || noted= number=
    for at in /sys/block/loop*/loop; do
        # What is behind the others would be asked as well, and may be an engine that hangs.
        read -r file 2> /dev/null < "$at/backing_file" || continue
        loop=${at%/loop} loop=/dev/${loop##*/}
        case $loop,$file in "$noted",*|*,"$mount/data"|*,/data) ;; *) continue ;; esac
        [ "$(cat "$at/autoclear")" = 0 ] || continue
        behind=$(losetup --noheadings --output BACK-MAJ:MIN "$loop" | tr -d ' ')
        [ "${behind:-dead}" != "$over" ] || { echo "$loop"; continue; }
        [ -z "$number" ] || [ "$loop" != "$noted" ] ||
            [ "$(sequence "$loop")" != "$number" ] || echo "$loop"
    done
}
# What the users of an engine that is at work have open.
served() {
    alive || return 0
    loops
    read -r noted number 2> /dev/null < "$folder/attached" || return 0
    case $noted in /dev/ublkb*) [ "$(sequence "$noted")" != "$number" ] || echo "$noted" ;; esac
}
# A ublk device that waits for its engine is not.
attached() {
    read -r noted number 2> /dev/null < "$folder/attached" || return 1
    [ "$(readlink "$device") $(sequence "$noted")" = "$noted $number" ] || return 1
    case $noted in /dev/ublkb*) [ ! -e "$folder/ended-at" ] ;; esac
}
# One that takes its time is at work (124: it did not answer yet).
works() {
    attached || return 1
    case $noted in /dev/ublkb*) alive; return ;; esac
    timeout 10 head -c 0 "$mount/data" 2> /dev/null || [ $? = 124 ]
}
# By what it is served; fails as long as it is not.
front() {
    read -r front served 2> /dev/null < "$folder/front" || return 1
    case $front in
        ublk) [ -b "$served" ] ;;
        *) [ -e "$mount/data" ] ;;
    esac
}
# On the flash, for good: the engine has ended while the computer goes on, or is at work again. One
# at a time: whoever takes the disk down puts down how it was left, after this.
mark() {
    mkdir -p "$folder"
    (
        flock 8
        timeout 60 @MARK@ "$1" >> "$log" 2>&1
    ) 8> "$folder/marking" 9>&-
}
attach() {
    (umask 022; mkdir -p /dev/hotset)
    front || return 1
    mark resumed
    case $front in
        ublk) shown=$served ;;
        *) shown=$(losetup --find --show --partscan --direct-io=on "$mount/data") || return 1 ;;
    esac
    # As much is read ahead of it as of its origin, where that is a device.
    ahead=$(timeout 10 blockdev --getra @ORIGIN@ 2> /dev/null) && blockdev --setra "$ahead" "$shown"
    echo "$shown $(sequence "$shown")" > "$folder/attached"
    ln -sfn "$shown" "$device"
    rm -f "$folder/ended-at"
    tell_systemd "$shown"
}
# In the background: the kernel waits for what is under way, however long that takes. Fails if the
# disk had a ublk device, and may still have it.
remove_device() {
    [ -c /dev/ublk-control ] || return 0
    @PROGRAM@ remove-device --origin-id @ORIGIN_ID@ 7>&- 9>&- &
    n=0
    while [ -e "/proc/$!/exe" ] && [ $n -lt 1200 ]; do n=$((n + 1)); sleep 0.05; done
    [ -e "/proc/$!/exe" ] || ! wait $! || return 0
    read -r noted number 2> /dev/null < "$folder/attached" || return 0
    case $noted in /dev/ublkb*) ;; *) return 0 ;; esac
    echo "hotset-engine: $noted is not removed: requests to it are under way, or it is in use" >&2
    return 1
}
detach() {
    rm -f "$device"
    [ -d "$folder" ] || return 0
    # One at a time: what another has just detached is somebody else's by now.
    (
        flock 9
        for loop in $(loops); do losetup --detach "$loop"; tell_systemd "$loop"; done
        remove_device && rm -f "$folder/attached"
    ) 9> "$folder/detaching"
}
release() {
    # Told by systemd, of an engine that is started again.
    case ${SERVICE_RESULT-}-${EXIT_STATUS-} in
        # Before a start.
        -*) ;;
        # One that was told to end or refuses is not; nobody is to wait for it.
        success-*|exit-code-2) rm -f "$folder/ended-at"; mark ended ;;
        *) moment > "$folder/ended-at"; mark ended ;;
    esac
    # The engine that comes takes a ublk device over.
    case $(cat "$folder/attached" 2> /dev/null) in
        /dev/ublkb*) has_just_ended || detach ;;
        *) detach ;;
    esac
    umount -l "$mount" 2> /dev/null
    rm -f "$folder/control" "$folder/front"
}
# Says how many seconds ago the engine ended, if it is about to be started again, and whether
# requests wait for that.
restarting() {
    read -r since 2> /dev/null < "$folder/ended-at" || return 1
    if [ -d /run/systemd/system ]; then
        case $(systemctl is-active hotset-engine-@DISK@.service) in activating|deactivating) ;; *) return 1 ;; esac
    else
        read -r watching 2> /dev/null < "$folder/supervisor" || return 1
        grep -qzx supervise "/proc/$watching/cmdline" 2> /dev/null || return 1
    fi
    waits=$(cut -d ' ' -f 1 "$folder/attached" 2> /dev/null)
    case $waits in /dev/ublkb*) waits=waits ;; *) waits= ;; esac
    echo $(($(moment) - since)) $waits
}
check() {
    run --check
}
# Whether somebody watches over an engine; as long as what it has begun is not done, too.
watched() {
    [ -e "$folder/watching" ] && ! flock --nonblock "$folder/watching" true
}
supervise() {
    exec 7> "$folder/watching"
    # One that was before takes down what it finds.
    flock 7
    echo $$ > "$folder/supervisor"
    while :; do
        release
        (run) >> "$log" 2>&1 7>&- &
        engine=$! ready=
        echo "$engine" > "$folder/pid"
        until front || [ ! -e "/proc/$engine/exe" ]; do sleep 0.05; done
        ! front || { attach >> "$log" 2>&1 && ready=1; }
        wait "$engine"
        ended=$?
        # Else whoever stops it does.
        [ -e "$folder/stop" ] || mark ended
        # 0: it was told to end, 2: it refuses what it was given.
        case $ended in 0|2) ready= ;; esac
        rm -f "$folder/ended-at"
        [ -z "$ready" ] || moment > "$folder/ended-at"
        release
        [ -n "$ready" ] || break
        echo "the engine ended with code $ended: it is started again" >> "$log"
        sleep 1
        [ ! -e "$folder/stop" ] || break
    done
    rm -f "$folder/pid" "$folder/supervisor" "$folder/ended-at"
    echo "$ended" > "$folder/ended"
}
start() {
    ! works || return 0
    mkdir -p "$folder"
    rm -f "$folder/ended" "$folder/stop" "$folder/ended-at"
    : > "$log"
    if [ -d /run/systemd/system ]; then
        systemctl reset-failed hotset-engine-@DISK@.service 2> /dev/null
        : > "$folder/may-run"
        systemctl start hotset-engine-@DISK@.service
        set -- $?
        rm -f "$folder/may-run"
        return $1
    fi
    # Without the locks of whoever started it.
    setsid sh "$0" supervise < /dev/null > /dev/null 2>&1 \
        3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
    n=0
    until works; do
        [ ! -e "$folder/ended" ] || return 1
        n=$((n + 1)); [ $n -lt 1200 ] || return 1
        sleep 0.05
    done
}
# Its number, whatever became of what was noted; those of other containers are theirs.
find_engine() {
    ! read -r engine 2> /dev/null < "$folder/pid" || return 0
    own=$(readlink /proc/self/ns/mnt)
    for at in $(grep -lzxF "$folder/control" /proc/[0-9]*/cmdline 2> /dev/null); do
        engine=${at#/proc/} engine=${engine%/cmdline}
        [ "$(readlink "/proc/$engine/ns/mnt")" != "$own" ] || return 0
    done
    return 1
}
# The engine's child before it is the engine does not count: its number is read anew.
is_engine() {
    tr '\0' '\n' 2> /dev/null < "/proc/$1/cmdline" | grep -qxF "$folder/control"
}
# Whether it runs; one that does not answer does.
alive() {
    if [ -d /run/systemd/system ]; then
        case $(systemctl is-active hotset-engine-@DISK@.service) in inactive|failed) return 1 ;; esac
        return 0
    fi
    find_engine && is_engine "$engine"
}
stop() {
    if [ -d /run/systemd/system ]; then
        systemctl stop hotset-engine-@DISK@.service
        set -- $?
        # One that is not started again, as it ended too often, leaves its device.
        detach || return 1
        return $1
    fi
    detach
    # Whoever watches over it tidies up and starts no other. Before that is over nobody goes on: it
    # would take the next engine's device. One that was killed as well leaves the number.
    [ ! -d "$folder" ] || : > "$folder/stop"
    n=0
    while watched || { find_engine && [ $n -lt 40 ]; }; do
        if find_engine && is_engine "$engine"; then
            kill -TERM "$engine" 2> /dev/null
            while is_engine "$engine"; do sleep 0.05; done
        fi
        n=$((n + 1)); [ $n -lt 2400 ] || {
            echo "hotset-engine: whoever watches over it does not end" >&2
            return 1
        }
        sleep 0.05
    done
    [ ! -d "$folder" ] || mark ended
    release
    rm -f "$folder/pid"
    detach
}

"$1"
