#!/usr/bin/env bash
# Installs what hotset needs and this computer lacks: packages of Debian or Ubuntu, Rust, uv.
#
#   scripts/setup.sh list PART…       say what will be installed, and install nothing
#   scripts/setup.sh install PART…    install it
#
#   python   uv and a Python for it          rust    compiling the Rust programs
#   image    building the lab's image        lab     running the lab
#   tests    what the tests need besides
#
# `make setup`, `make demo` and `make test` call it, `list` first. As root it installs, otherwise by
# a sudo that asks for no password; without one it prints the command for root and ends with code 3.
set -euo pipefail

RUST=1.85
PYTHON=3.11
UV_HOME="${XDG_CACHE_HOME:-$HOME/.cache}/hotset/uv"
# As in the Makefile. Ubuntu's newer Rust has a folder of its own.
export PATH="/usr/lib/rust-$RUST/bin:$PATH:$UV_HOME/bin:$HOME/.cargo/bin"

# A line is a dependency as Debian's control files write it: the first package that fits is taken.
PYTHON_PACKAGES=("python3 (>= $PYTHON)" python3-venv)    # with pip, which fetches uv
DOWNLOAD_PACKAGES=(ca-certificates)     # pip, uv and cargo download by https
IMAGE_PACKAGES=(mmdebstrap debian-archive-keyring e2fsprogs mount)
ROOTLESS_IMAGE_PACKAGES=(uidmap)    # the image is built in a user namespace
# Debian 12 has a newer Rust for its browsers' sake, Ubuntu 24.04 several beside each other.
RUST_PACKAGES=("cargo (>= $RUST) | cargo-web (>= $RUST) | cargo-$RUST")
BUILD_PACKAGES=(gcc libc6-dev)
LAB_PACKAGES=(
    qemu-system-x86         # the virtual machine
    tgt fuse3               # the modelled disk and its iSCSI export
    iproute2 util-linux openssh-client
)
TEST_PACKAGES=(
    postgresql              # the workload's tests run a server of their own
    fio thin-provisioning-tools   # the tests of the modelled disk and of the warm-up
    libodbc2 libodbcinst2 libltdl7 libgssapi-krb5-2   # pyodbc and Microsoft's driver load these
    tdsodbc                 # the other driver for SQL Server
    curl jq                 # the API as its page shows it
    shellcheck
    openssh-server busybox  # a server that programs are copied to
    man-db mandoc zsh fish  # man pages, and completion in shells other than bash
)
BROWSER=chromium            # pages are drawn by a real browser
RUST_LINT_PACKAGES=(
    "rustfmt (>= $RUST) | rustfmt-web (>= $RUST) | rustfmt-$RUST"
    "rust-clippy (>= $RUST) | rust-web-clippy (>= $RUST) | rust-$RUST-clippy"
)

say() { printf 'setup: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 3; }
usage() { say 'usage: scripts/setup.sh list|install python|image|rust|lab|tests …'; exit 2; }

# ---------------------------------------------------------------- what this computer has

python_fits() { python3 -c "import sys, ensurepip; sys.exit(sys.version_info < (${PYTHON/./, }))" 2>/dev/null; }
# Ubuntu has it only as a snap, which the tests cannot steer: theirs of pages are skipped there.
has_browser_package() { ! grep -qx 'ID=ubuntu' /etc/os-release; }
uv_works() { uv --version >/dev/null 2>&1; }

rust_version() { cargo --version 2>/dev/null | cut -d' ' -f2; }
rust_fits() {
    local version
    version=$(rust_version) && rustc --version >/dev/null 2>&1 &&
        printf '%s\n%s\n' "$RUST" "$version" | sort --check=quiet --version-sort
}
rust_lints() { cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

# What a rustup lacks is not apt's to install.
rustup_has() {
    command -v rustup >/dev/null || return 0
    rust_fits || give_up "Rust $RUST or newer is needed (cargo here: $(rust_version || echo none)): run rustup default stable && rustup update"
    [ "$1" != tests ] || rust_lints || give_up 'the tests need rustfmt and clippy: run rustup component add rustfmt clippy'
}

# The packages that the parts lack, into `missing`.
find_missing() {
    local part package installed needed=()
    for part in "$@"; do
        case $part in
            python)
                needed+=("${DOWNLOAD_PACKAGES[@]}")
                python_fits || needed+=("${PYTHON_PACKAGES[@]}") ;;
            image)
                needed+=("${IMAGE_PACKAGES[@]}")
                [ "$(id -u)" = 0 ] || needed+=("${ROOTLESS_IMAGE_PACKAGES[@]}") ;;
            rust)
                rustup_has rust
                needed+=("${DOWNLOAD_PACKAGES[@]}" "${BUILD_PACKAGES[@]}")
                rust_fits || needed+=("${RUST_PACKAGES[@]}") ;;
            lab) needed+=("${LAB_PACKAGES[@]}") ;;
            tests)
                rustup_has tests
                needed+=("${TEST_PACKAGES[@]}")
                has_browser_package && needed+=("$BROWSER")
                rust_lints || needed+=("${RUST_LINT_PACKAGES[@]}") ;;
            *) usage ;;
        esac
    done
    missing=()
    [ ${#needed[@]} -gt 0 ] || return 0
    # Of names with a choice none is asked for: what they bring has been looked for itself.
    installed=" $(dpkg-query -W -f='${Package}=${Status} ' "${needed[@]%% *}" 2>/dev/null || true)"
    for package in "${needed[@]}"; do
        [[ $package = *'|'* || $installed != *" ${package%% *}=install ok installed "* ]] || continue
        [[ " ${missing[*]} " = *" $package "* ]] || missing+=("$package")
    done
}

# ---------------------------------------------------------------- apt

joined() { local list; list=$(printf ', %s' "$@"); printf '%s' "${list:2}"; }

as_me() { "$@"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_be_root() { as_root true 2>/dev/null; }

apt_log=$(mktemp)
trap 'rm -f "$apt_log"' EXIT

# run_apt as_me|as_root ARGUMENT…: apt-get, its words in $apt_log. Waits while another apt is at work.
run_apt() {
    local by=$1 holder='' tries
    shift
    for ((tries = 0; tries < 120; tries++)); do
        "$by" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes "$@" >"$apt_log" 2>&1 && return
        grep -qE 'Could not get lock|Unable to (acquire|lock)' "$apt_log" || return 1
        if [ $tries = 0 ]; then
            holder=$(sed -nE 's/.*held by (process [0-9]+ \([^)]*\)).*/\1/p;T;q' "$apt_log")
            say "apt is in use by ${holder:-another process}: waiting for it, up to ten minutes"
        fi
        sleep 5
    done
    give_up "apt is still in use by ${holder:-another process}: run this again when it has ended"
}

# run_satisfy as_me|as_root DEPENDENCY… [-- ARGUMENT…]
run_satisfy() {
    local by=$1 dependencies=()
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do dependencies+=("$1"); shift; done
    run_apt "$by" --no-install-recommends --no-remove "${@:2}" satisfy "$(joined "${dependencies[@]}")"
}

# The dependencies in words: of several that would do, the package that apt would fetch ($apt_log).
named() {
    local dependency name found words=()
    for dependency in "$@"; do
        found=$dependency
        while read -r name _; do
            grep -qE "/${name}_[^/]*\.deb' " "$apt_log" && found=$name && break
        done < <(tr '|' '\n' <<<"$dependency")
        words+=("$found")
    done
    joined "${words[@]}"
}

complaint() { sed -nE '/^(E|W): /{s///;s/  +/: /;p;q}' "$apt_log"; }

# Read the package lists anew. A list that cannot be fetched need not be one that is needed.
unread_lists=''
update_lists() {
    run_apt as_root update && ! grep -qE '^(E|W): ' "$apt_log" || unread_lists=$(complaint)
}

# Ends with the cause of what apt could not do, on one line.
explain_and_give_up() {
    local why one lacking=()
    why=$(complaint)
    grep -q 'remove is disabled' "$apt_log" &&
        give_up "apt would remove packages of yours for this; look at it and decide, as root: apt-get satisfy --no-install-recommends '$(joined "$@")'"
    [ -z "$unread_lists" ] || give_up "the package lists cannot be fetched: $unread_lists. Is this computer connected?"
    for one in "$@"; do run_satisfy as_me "$one" -- --simulate || lacking+=("$one"); done
    [ ${#lacking[@]} -gt 0 ] || give_up "apt-get could not install $(joined "$@"): $why"
    case "${lacking[*]}" in
        *cargo*|*rustfmt*|*clippy*) why='; Rust also comes from https://rustup.rs' ;;
        *) why='' ;;
    esac
    give_up "this system has no package for: $(joined "${lacking[@]}"). Debian 12, Ubuntu 24.04 and newer have them$why"
}

# Packages that start services (tgt, postgresql) are wanted for their programs alone.
POLICY=/usr/sbin/policy-rc.d
POLICY_MARK='# by hotset, while it installs packages'
without_services() {
    local result=0
    if [ ! -e $POLICY ] || grep -qF "$POLICY_MARK" $POLICY; then
        printf '#!/bin/sh\n%s\nexit 101\n' "$POLICY_MARK" | as_root install -m 755 /dev/stdin $POLICY
        trap 'as_root rm -f $POLICY; rm -f "$apt_log"' EXIT
    fi
    "$@" || result=$?
    if grep -qsF "$POLICY_MARK" $POLICY; then as_root rm -f $POLICY; fi
    return $result
}

# ---------------------------------------------------------------- what is done

list() {
    local size=''
    find_missing "$@"
    if [ ${#missing[@]} -gt 0 ]; then
        command -v apt-get >/dev/null ||
            give_up "this is neither Debian nor Ubuntu; install yourself what stands for: $(joined "${missing[@]}"). Then: make build image && ./hotset demo"
        may_be_root && update_lists
        if run_satisfy as_me "${missing[@]}" -- --print-uris; then
            size=$(sed -nE 's/^[0-9]+ upgraded, ([0-9]+) newly.*/\1 with what they need/p;s/^Need to get (.*) of archives.*/, \1 to fetch/p' "$apt_log" | tr -d '\n')
        elif may_be_root; then
            explain_and_give_up "${missing[@]}"
        fi
        say "to be installed: packages of this system${size:+ ($size)}: $(named "${missing[@]}")"
    fi
    [[ " $* " != *' python '* ]] || uv_works || say "to be installed: uv, which fetches hotset's Python packages, into $UV_HOME"
    [ ${#missing[@]} = 0 ] || may_be_root || give_up "not root, and no sudo without a password. Run this once as root, then try again:
  apt-get update && apt-get satisfy --no-install-recommends '$(joined "${missing[@]}")'"
}

install_parts() {
    find_missing "$@"
    if [ ${#missing[@]} -gt 0 ]; then
        say "installing packages for: $*"
        without_services install_missing
        hash -r
    fi
    case " $* " in *' python '*) ensure_uv ;; esac
    case " $* " in *' rust '*) rust_fits || give_up "Rust $RUST or newer is needed, and cargo here is $(rust_version || echo missing): see https://rustup.rs" ;; esac
}

install_missing() {
    run_satisfy as_root "${missing[@]}" && return
    update_lists    # what the lists name may be gone from the archive
    run_satisfy as_root "${missing[@]}" || explain_and_give_up "${missing[@]}"
}

ensure_uv() {
    uv_works && return
    python_fits || give_up "Python $PYTHON or newer is needed, and $(command -v python3) is $(python3 --version 2>&1)"
    say "installing uv into $UV_HOME"
    { python3 -m venv "$UV_HOME" && "$UV_HOME/bin/pip" install --quiet uv; } >"$apt_log" 2>&1 ||
        give_up "uv could not be installed: $(sed -n '$p' "$apt_log"). See https://docs.astral.sh/uv"
}

case "${1:-}" in
    list|install) ;;
    *) usage ;;
esac
[ $# -gt 1 ] || usage
[ -f /proc/sys/kernel/osrelease ] || give_up 'hotset needs Linux'
if [ "$1" = list ]; then list "${@:2}"; else install_parts "${@:2}"; fi
