#!/usr/bin/env bash
# Installs what `make demo` or `make test` lacks, after listing it: Debian/Ubuntu packages, uv, Rust.
#
#   scripts/setup.sh run     what running hotset needs
#   scripts/setup.sh test    that, and what its tests need
#
# As root it installs; otherwise it uses sudo where that asks no password, else it prints the one
# command to run. Nothing is installed that is there already.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 3; }

RUN_PACKAGES=(
    python3-venv            # uv, where it is missing
    mmdebstrap debian-archive-keyring e2fsprogs   # the lab's frozen image
    qemu-system-x86         # its virtual machine
    tgt fuse3               # the modelled disk and its iSCSI export
    iproute2 util-linux openssh-client
    gcc libc6-dev           # linking flashdev
)
TEST_PACKAGES=(
    postgresql              # the workload's tests run a server of their own
    fio thin-provisioning-tools   # the tests of the modelled disk and of the warm-up
    chromium                # the report is drawn by a real browser
    libodbc2 libodbcinst2 libltdl7 libgssapi-krb5-2   # pyodbc and Microsoft's driver load these
    curl jq                 # scripts/hotset-api.sh
    shellcheck
)
ROOTLESS_PACKAGES=(uidmap)  # the image's build in a user namespace

packages=("${RUN_PACKAGES[@]}")
case "${1:-}" in
    run) ;;
    test) packages+=("${TEST_PACKAGES[@]}") ;;
    *) give_up "usage: scripts/setup.sh run|test" ;;
esac
[ "$(id -u)" = 0 ] || packages+=("${ROOTLESS_PACKAGES[@]}")

command -v apt-get >/dev/null || give_up "this is no Debian or Ubuntu: install the equivalents of: ${packages[*]}"
[ -f /proc/sys/kernel/osrelease ] || give_up "hotset needs Linux"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif sudo -n true 2>/dev/null; then sudo "$@"
    else give_up "not root, and sudo asks for a password. Run once: sudo $*"
    fi
}

installed() { dpkg-query -W -f='${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'; }

apt_install() {
    local missing=()
    for package in "$@"; do installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing Debian packages: ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # Packages that start services (tgt, postgresql) are only wanted for their programs.
    local policy=/usr/sbin/policy-rc.d made=''
    if [ ! -e $policy ]; then made=1; printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null; as_root chmod 755 $policy; fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null || { [ -z $made ] || as_root rm -f $policy; give_up "apt-get could not install: ${missing[*]}"; }
    [ -z $made ] || as_root rm -f $policy
}

python_is_new_enough() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

ensure_uv() {
    command -v uv >/dev/null && return
    local home="${XDG_CACHE_HOME:-$HOME/.cache}/hotset/uv"
    [ -x "$home/bin/uv" ] && return
    say "installing uv into $home"
    python3 -m venv "$home" && "$home/bin/pip" install --quiet uv || give_up "uv could not be installed: see https://docs.astral.sh/uv"
}

rust_is_new_enough() {
    local version
    version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
    [ "$(printf '1.85\n%s\n' "$version" | sort -V | head -n1)" = 1.85 ]
}

ensure_rust() {
    rust_is_new_enough && return
    # Debian 13 and later ship a new enough Rust; Debian 12 has one for its browsers' sake.
    local candidate
    for candidate in cargo cargo-web rustup; do
        apt-cache policy "$candidate" 2>/dev/null | grep -q 'Candidate: [0-9]' || continue
        if [ $candidate = rustup ]; then
            apt_install rustup && rustup default stable >/dev/null 2>&1
        elif [ "$(apt-cache policy $candidate | sed -n 's/ *Candidate: *\([0-9.]*\).*/\1/p' | sed '1q' | { read -r v; printf '%s\n1.85\n' "${v/#0./1.}" | sort -V | head -n1; })" = 1.85 ]; then
            apt_install "$candidate"
        fi
        hash -r
        rust_is_new_enough && return
    done
    give_up "Rust 1.85 or newer is missing and this system has no package of it: install it with https://rustup.rs, then run this again"
}

apt_install "${packages[@]}"
python_is_new_enough || give_up "Python 3.11 or newer is needed (this is $(python3 --version 2>&1)): Debian 12, Ubuntu 24.04 or later have it"
ensure_uv
ensure_rust
