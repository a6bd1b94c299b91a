# $1: take or give-back; $2: the key; $3: the origin, a disk or a multipath device of disks; $4: the key that
# clones of this machine have, too: that of earlier versions, or $2 where the firmware tells nothing.
# As disk/identity/reservation.py.
set -u
mine=$2 former=$4 keys=$2 type=--prout-type=5
[ "$former" = "$mine" ] || keys="$mine $former"
# A disk may first have something else to tell, such as that it was reset.
persist() {
    for try in 1 2 3; do
        rc=0; sg_persist --no-inquiry "$@" 2> /dev/null || rc=$?
        [ $rc = 6 ] || return $rc
    done
    return 6
}
# Of the kernel: udev forgets the World Wide Name of a path that is dead.
wwid() { cat "$1/device/wwid" 2> /dev/null || cat "$1/wwid" 2> /dev/null; }
case $(lsblk --nodeps --noheadings --output TYPE "$3" | head -n 1) in
    disk) paths=$3 ;;
    mpath)
        dm=$(readlink -f "$3") id= paths=
        for disk in "/sys/block/${dm##*/}/slaves/"*; do
            id=$(wwid "$disk") && break
        done
        [ -n "$id" ] || exit 0
        for disk in /sys/block/*; do
            [ "$(wwid "$disk")" != "$id" ] || paths="$paths /dev/${disk##*/}"
        done ;;
    *) exit 0 ;;
esac
# The key that holds the reservation, as the first path says that answers.
holder() {
    for path; do
        said=$(persist --in --read-reservation "$path") || continue
        echo "$said" | sed -n 's/.*[Kk]ey *= *\(0x[0-9a-f]*\).*/\1/p'
        return
    done
}
# Whether this host holds the reservation, of key $1, which becomes its key then. The storage lets that path alone
# change a key that registered it.
is_ours() {
    [ "$1" != "$mine" ] || [ "$mine" = "$former" ] || return 0
    [ "$1" = "$mine" ] || [ "$1" = "$former" ] || return 1
    changed=
    for path in $paths; do
        ! persist --out --register --param-rk=$1 --param-sark=$mine "$path" || changed=1
    done
    [ -n "$changed" ] && [ "$(holder $paths)" = "$mine" ]
}
unregister() {
    for path in $paths; do
        for key in $keys; do
            persist --out --register --param-rk=$key --param-sark=0 "$path" || :
        done
    done
}
give_back() {
    for path in $paths; do
        [ "$(holder "$path")" = "$mine" ] || continue
        # From paths that are dead or gone by now, too.
        set -- $paths; [ $# = 1 ] ||
            persist --out --preempt --param-rk=$mine --param-sark=$mine $type "$path" || :
        persist --out --release --param-rk=$mine $type "$path" || :
        break
    done
    unregister
}
take() {
    # Another's key stays as it is, also one that this very host has: to register would overwrite it.
    theirs=$(holder $paths); [ -z "$theirs" ] || is_ours "$theirs" || { unregister; return 1; }
    was=$theirs register="--register-ignore --param-sark=$mine"
    for path in $paths; do
        # Less than all is none, as a write by a path that is not registered would fail.
        persist --out $register --param-aptpl "$path" || persist --out $register "$path" ||
            { give_back; return 0; }
    done
    set -- $paths; ! persist --out --reserve --param-rk=$mine $type "$1" || return 0
    theirs=$(holder $paths); [ -z "$theirs" ] || [ -n "$was" -a "$theirs" = "$mine" ] ||
        { unregister; return 1; }
}
case $1 in
    take) take ;;
    # Whoever has it or takes it next does not expect that this host writes.
    *) theirs=$(holder $paths); if is_ours "$theirs"; then give_back; else unregister; fi ;;
esac
