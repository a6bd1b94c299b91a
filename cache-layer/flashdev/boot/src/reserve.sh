# $1: take or give-back; $2: the key; $3: the origin, a disk or a multipath device of disks.
# As provisioning/identity/reservation.py.
set -u
mine=$2
# A disk may first have something else to tell, such as that it was reset.
persist() {
    for try in 1 2 3; do
        rc=0; sg_persist --no-inquiry "$@" 2> /dev/null || rc=$?
        [ $rc = 6 ] || return $rc
    done
    return 6
}
case $(lsblk --nodeps --noheadings --output TYPE "$3" | head -n 1) in
    disk) paths=$3 first=$3 ;;
    mpath)
        dm=$(readlink -f "$3"); first=$(ls "/sys/block/${dm##*/}/slaves" | head -n 1); wwn= paths=
        [ -z "$first" ] || wwn=$(lsblk --nodeps --noheadings --output WWN "/dev/$first")
        [ -z "$wwn" ] || paths=$(lsblk --nodeps --noheadings --output PATH,TYPE,WWN |
            sed -n "s/ *disk *$wwn$//p")
        [ -n "$paths" ] || exit 0
        first=/dev/$first ;;
    *) exit 0 ;;
esac
type=--prout-type=5
take() {
    registered=yes
    register="--register-ignore --param-sark=$mine"
    for path in $paths; do
        persist --out $register --param-aptpl "$path" || persist --out $register "$path" ||
            { registered=; break; }
    done
    [ -z "$registered" ] || ! persist --out --reserve --param-rk=$mine $type "$first" ||
        return 0
    # Less than all is none, as a write by a path that is not registered would fail.
    [ -n "$registered" ] || for path in $paths; do
        persist --out --register --param-rk=$mine --param-sark=0 "$path" || :
    done
    for path in $paths; do
        said=$(persist --in --read-reservation "$path") || continue
        case $said in
            *[Kk]ey*=*) echo "$said" | grep -qiw $mine; return ;;
        esac
    done
}
give_back() {
    # From paths that are gone by now, too.
    set -- $paths; [ $# = 1 ] ||
        persist --out --preempt --param-rk=$mine --param-sark=$mine $type "$first" || :
    persist --out --release --param-rk=$mine $type "$first" || :
    for path in $paths; do
        persist --out --register --param-rk=$mine --param-sark=0 "$path" || :
    done
}
if [ "$1" = take ]; then take; else give_back; fi
