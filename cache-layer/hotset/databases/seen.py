"""Where a machine sees the files that a process of its own has: a container's have other paths."""

SEEN = r"""
seen() {
    here=$(readlink -f "$1") there=""
    if [ -n "$below" ] && [ "$(stat -L -c %d "$2")" = "$(stat -L -c %d "$below")" ]; then
        case "$here/" in
        "$below"/*) [ "$here" -ef "$2" ] ;;
        *) false ;;
        esac || there=$(find "$below" -xdev -inum "$(stat -L -c %i "$2")" | head -n 1)
        here=${there:-$here}
    fi
    [ "$here" -ef "$2" ] || here=$2
    printf '%s' "$here"
}
"""
"""A shell function: prints the path of a file or folder. $1: its path as the process has it; $2:
the way to it through the process, as `/proc/PID/root/…`, which is printed where there is none
besides; $below: the folder whose names are wanted, resolved, or nothing."""
