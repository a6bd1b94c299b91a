# $1: a file. Prints `over /dev/loopN` for each loop device over it, and `unknown /dev/loopN` for each
# of which nobody can tell what is behind it.
# `losetup --associated` asks the file behind each loop device: an engine that hangs keeps whoever
# asks. By its name alone the file would not be found from another mount namespace.
file=$(readlink -f "$1") device=$(stat -c%d "$1") same=$(stat -c%i "$1") || exit
same="$same $((device >> 8 & 4095)):$((device & 255 | device >> 12 & 1048320))"
# What an engine serves is no file of anybody else, and is not to be asked again once it failed.
is_served() {
    noted="$1 $(cat "/sys/class/block/${1#/dev/}/diskseq" 2> /dev/null)"
    grep -qsxF "$noted" /run/hotset/engine/*/attached
}
# The kernel was asked, and has no answer of the file behind: its file system is dead (ENOTCONN of a
# FUSE whose server has ended), while that of ours answers.
is_of_a_dead_one() {
    [ "$answered" ] && [ -z "$found" ] && (: < "$1") 2> /dev/null && stat -c%i "$2" > /dev/null
}
for at in /sys/block/loop*/loop; do
    IFS= read -r behind 2> /dev/null < "$at/backing_file" || continue
    loop=${at%/loop} loop=/dev/${loop##*/}
    [ "$behind" != "$file" ] || { echo "over $loop"; continue; }
    case $behind in /run/hotset/engine/*/mount/data) continue ;; esac
    answered=
    found=$(timeout 2 losetup -nO BACK-INO,BACK-MAJ:MIN "$loop" 2> /dev/null) && answered=yes
    found=$(echo $found)
    case $found in
        "$same") echo "over $loop" ;;
        [0-9]*\ [0-9]*:[0-9]*) ;;
        *) [ ! -e "$at/backing_file" ] || is_served "$loop" || is_of_a_dead_one "$loop" "$file" \
            || echo "unknown $loop" ;;
    esac
done
