"""Packages of `dist/` tried as a new user would, on bare Debian and Ubuntu systems.

Each system is unpacked into a folder and entered in namespaces of its own; it gets the packages and
its own archive, and no checkout, compiler or systemd that runs. A walk is a list of commands, how
each has to end and what it has to say. `first` goes from the package to the first hit ratio, in at
most five minutes; `lab` does what the lab says to try; `life` installs twice, upgrades, is refused,
removes and purges; `upgrade` does so while a disk is written to and warmed up, from `--before`, the
package of an earlier version, and goes back to it meanwhile; `day` calls the verbs of every day and
those that start processes; `faults` has a full disk, an interrupted dpkg, another computer's
package and the like; `sqlserver` runs the benchmarks on the server that HOTSET_SQLSERVER_DSN names,
by FreeTDS. Printed is a Markdown table; the logs stay in the work folder. Needs root, mmdebstrap,
FUSE and loop devices.

    cd scripts && python3 -m release.bare.try_packages --system debian12 --walk first
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from campaign.ran_on import ACTS
from campaign.records import MISSING, SLOTS, WRITE
from release.bare import acts
from release.bare.acts import Act
from release.bare.enter import enter
from release.bare.steps import Step, execute, table, write
from release.bare.unpack import (
    SUITES,
    TOO_OLD,
    build_base,
    call_inside,
    remove_on_signals,
    unpacked,
)

ROOT = Path(__file__).parents[3]
HOME = Path("/root")
FIRST_MAX_S = 300
"""From the package to the first hit ratio."""
REFUSED, FAILED_APT = 1, 100


_INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install --yes"
_BARE = f"{_INSTALL} --no-install-recommends ./hotset_*.deb"
_REMOVE = "DEBIAN_FRONTEND=noninteractive apt-get remove --yes hotset"
_PURGE = "DEBIAN_FRONTEND=noninteractive apt-get purge --yes hotset"
_WHOLE = Act('test -z "$(dpkg --verify hotset)" && test -z "$(dpkg --audit)" && hotset --version')
_GONE = Act("test ! -e /usr/lib/hotset && test ! -e /etc/hotset && ! getent passwd hotset")
_DSN = "'postgresql:///shop?host=/run/postgresql&port=5433'"
_HIT_RATIO = Act(f"hotset report hit-ratio shop --by table --dsn {_DSN}", says="pgbench_accounts")

FIRST = (
    Act("apt-get update"),
    Act(f"{_INSTALL} ./hotset_*.deb"),
    Act("hotset doctor", says="possible"),
    acts.FILES,
    acts.CREATE,
    acts.MOUNT,
    Act(f"{_INSTALL} postgresql"),
    acts.CLUSTER,
    acts.as_postgres("createuser -s root", "createdb shop", "pgbench -i -q -s 20 shop"),
    acts.COLD,
    Act(f"hotset warmup run database:shop --dsn {_DSN}"),
    Act("hotset heat start shop"),
    Act("pgbench -S -c 2 -T 5 -p 5433 shop"),
    _HIT_RATIO,
    Act(
        "cd /etc/hotset/console && echo 'a password for this'"
        " | install -m 640 -g hotset /dev/stdin password"
    ),
    Act(
        "set -a; . /etc/hotset/console/environment;"
        " HOME=/var/lib/hotset-console runuser -u hotset -- hotset console & for n in $(seq 50); do"
        " python3 -c 'import urllib.request as r;"
        ' print(r.urlopen("http://127.0.0.1:8480/login").read()[:300])\''
        " 2> /dev/null && break; sleep 0.2; done; kill %1; rm /etc/hotset/console/password",
        says="hotset",
    ),
    Act(_REMOVE, FAILED_APT, says="hotset tier deactivate NAME"),
    acts.STOP,
    Act("hotset tier destroy shop --yes"),
    Act(_REMOVE),
    Act("mount -o loop /srv/disk /srv/db && test -d /srv/db/shop/base && umount /srv/db"),
    Act(_PURGE),
    _GONE,
)
"""The first acts on a new system; the time up to :data:`_HIT_RATIO` counts."""


def _printed(verb: str, says: str) -> Act:
    """One of the commands that the lab says to try, as it is printed."""
    return Act(f"eval \"$(hotset lab status | grep --fixed-strings 'hotset {verb} ')\"", says=says)


LAB = (
    Act("apt-get update"),
    Act(f"{_INSTALL} ./hotset_*.deb ./hotset-bench_*.deb"),
    Act(f"{_INSTALL} mmdebstrap fuse3"),
    Act("hotset lab up"),
    _printed("warmup run", "warm-up"),
    _printed("tpcc run", "NOPM"),
    _printed("report hit-ratio", "hotset_tpcc.stock"),
    Act("hotset runs show last", says="hit ratio"),
    Act("hotset lab down --yes"),
)
"""What somebody tries who has no server with a flash device."""

_SCHEDULE = "/etc/systemd/system/hotset-warmup-shop-timed.service"
DAY = (
    Act("apt-get update"),
    Act(
        f"{_INSTALL} --no-install-recommends ./hotset_*.deb ./hotset-bench_*.deb postgresql"
        " libodbc2 tdsodbc openssl"
    ),
    Act("hotset doctor; test $? -le 3", says="ODBC driver FreeTDS"),
    Act("flashdev --version", says="flashdev"),
    *acts.SQL_SERVER,
    *acts.DAY,
    Act("hotset warmup schedule add --at 07:00 /srv/db", 3, says="nothing was written"),
    Act(f"test ! -e {_SCHEDULE} && hotset warmup schedule list"),
    # Of a time when systemd ran.
    Act(
        "mkdir --parents /etc/systemd/system && echo 'ExecStart=/usr/bin/hotset warmup run /srv/db"
        f" --disk shop' > {_SCHEDULE} && hotset warmup schedule list",
        says="nothing starts them",
    ),
    *acts.EVENING,
    Act(f"test ! -e {_SCHEDULE}"),
)


def _repack(name: str, change: str) -> Act:
    """Another package of ours, ``/root/NAME.deb``.

    :param change: of what `dpkg-deb --raw-extract` has unpacked into ``one``.
    """
    return Act(
        f"rm -rf one && dpkg-deb --raw-extract hotset_*.deb one && {change}"
        f" && dpkg-deb -Zgzip -z1 --build one {name}.deb"
    )


_NEXT = _repack("next", r"sed -i 's/^Version: .*/&+1/' one/DEBIAN/control")
_BROKEN = _repack(
    "broken", r"printf '#!/bin/sh\nexit 1\n' > one/DEBIAN/preinst && chmod 755 one/DEBIAN/preinst"
)
_FOREIGN = _repack(
    "foreign", r"sed -i 's/^Architecture: .*/Architecture: s390x/' one/DEBIAN/control"
)


def _answer(answer: str) -> str:
    """A purge on a terminal."""
    return f"echo {answer} | script --quiet --return --command 'dpkg --purge hotset' /dev/null"


LIFE = (
    Act("apt-get update"),
    Act(_BARE),
    _WHOLE,
    Act(f"{_INSTALL} --reinstall ./hotset_*.deb"),
    _WHOLE,
    Act("hotset report last", 3, says="hotset-bench"),
    Act(f"{_INSTALL} ./hotset-bench_*.deb"),
    Act("/usr/lib/hotset/bin/python3 -c 'import altair, duckdb, vl_convert, hotset.whatif.advice'"),
    Act("apt-get remove --yes hotset-bench && test ! -e /usr/lib/hotset/bench && hotset runs list"),
    Act("cd /etc/hotset/console && echo '# mine' >> environment && echo secret > key.pem"),
    _NEXT,
    Act("dpkg --install next.deb"),
    Act("grep '# mine' /etc/hotset/console/environment && hotset --version"),
    Act("stat --format='%A %U %G' /etc/hotset/console/key.pem", says="-rw-r----- root hotset"),
    Act("rm /etc/hotset/console/key.pem"),
    _BROKEN,
    Act("dpkg --install broken.deb", 1),
    Act("hotset --version && find /usr/lib/hotset -name '*.pyc' | grep -q pydantic"),
    acts.FILES,
    acts.CREATE,
    Act(_REMOVE, FAILED_APT, says="hotset tier detach NAME"),
    Act("hotset tier status", says="shop"),
    Act("hotset tier deactivate shop"),
    Act(_REMOVE, says="disks stay set up"),
    Act(_PURGE, says="not confirmed"),
    Act("ls /etc/hotset/flash/*.json"),
    Act(_BARE),
    Act("hotset tier activate shop && hotset tier deactivate shop"),
    Act("dpkg --remove hotset"),
    Act(_answer("no"), says="not confirmed"),
    Act(_BARE),
    Act("hotset tier activate shop && HOTSET_REMOVE=active dpkg --remove hotset"),
    Act(_answer("purge"), says="in use, so nothing"),
    Act(f"{_BARE} && hotset tier deactivate shop && dpkg --remove hotset"),
    Act(_answer("purge"), says="type: purge"),
    Act("grep -c HOTSET-LABEL /srv/flash"),
    _GONE,
    # The label is enough to have the flash device back.
    Act(f"{_BARE} && hotset tier import --flash /srv/flash && rm /etc/hotset/flash/*"),
    Act(
        f"losetup /dev/loop40 /srv/flash && {_PURGE}; losetup --detach /dev/loop40", says="a label"
    ),
    Act(f"{_BARE} && hotset tier import --flash /srv/flash && hotset tier destroy shop --yes"),
    Act(_PURGE),
    _GONE,
    Act("dpkg --install broken.deb", 1),
    Act("dpkg --status hotset && test ! -e /usr/lib/hotset", says="install ok not-installed"),
)

_EARLIER = _repack("before", r"sed -i 's/^Version: .*/Version: 0/' one/DEBIAN/control")
_ENGINE = "/run/hotset/engine/shop/pid"
_ACTIVE = Act("hotset tier status --format json", says='"state": "active"')


def _records(program: str, *more: str) -> str:
    """A program of `campaign.records` on the disk."""
    return f"python3 -u -c {shlex.quote(program)} /srv/db/records {SLOTS} {' '.join(more)}"


_ABANDON = (
    "device=$(readlink -f /dev/hotset/shop) && test -b $device || exit 0;"
    " umount --lazy /srv/db; losetup --detach $device"
)
"""After a walk that was not met: loop devices are the computer's, and would outlive its system."""
_WRITTEN = Act(
    f'lost=$({_records(MISSING, "$(wc -l < /srv/acks)")}) && echo "$lost" && test -z "$lost"'
)
_GOES_ON = Act(
    "n=$(wc -l < /srv/acks); until [ $(wc -l < /srv/acks) -gt $((n + 64)) ]; do sleep 0.1; done;"
    f" cmp {_ENGINE} /srv/engine && readlink /proc/$(cat {_ENGINE})/exe",
    says="hotset-engine",
)
UPGRADE = (
    Act("apt-get update"),
    Act(f"test -e before.deb || {{ {_EARLIER.command}; }}"),
    Act(f"{_INSTALL} --no-install-recommends ./before.deb && hotset --version"),
    Act("! cp /var/lib/hotset/made /srv || grep -x user /srv/made"),
    acts.FILES,
    acts.CREATE,
    Act(f"mkdir /srv/db && mount /dev/hotset/shop /srv/db && cp {_ENGINE} /srv/engine"),
    Act(
        "(n=0; while [ ! -e /srv/stop ]; do echo $n; n=$((n + 1)); done |"
        f" {_records(WRITE)} > /srv/acks 2>&1; touch /srv/stopped) > /dev/null 2>&1 &"
        " until [ -s /srv/acks ]; do sleep 0.1; done"
    ),
    # Half a minute, of what nobody has read.
    Act(
        "(hotset warmup run region:1536MiB+256MiB --method online --rate 8MB/s > /srv/warm-up 2>&1;"
        " echo $? > /srv/warm-up.code) > /dev/null 2>&1 & sleep 3; test ! -e /srv/warm-up.code"
    ),
    _ACTIVE,
    Act("dpkg --install hotset_*.deb && test ! -e /srv/warm-up.code"),
    _ACTIVE,
    _GOES_ON,
    Act(
        "until [ -e /srv/warm-up.code ]; do sleep 1; done;"
        " cat /srv/warm-up; exit $(cat /srv/warm-up.code)"
    ),
    Act("dpkg --remove hotset", 1, says="hotset tier deactivate NAME"),
    _GOES_ON,
    _WHOLE,
    Act("dpkg --install ./before.deb", says="over ("),
    _ACTIVE,
    _GOES_ON,
    Act("dpkg --install hotset_*.deb"),
    _ACTIVE,
    _GOES_ON,
    Act(
        "touch /srv/stop; until [ -e /srv/stopped ]; do sleep 0.1; done;"
        " wc -l < /srv/acks; ! grep -v '^[0-9]*$' /srv/acks"
    ),
    _WRITTEN,
    Act("umount /srv/db && hotset tier deactivate shop && hotset tier activate shop"),
    Act(f"mount /dev/hotset/shop /srv/db && ! cmp -s {_ENGINE} /srv/engine"),
    _WRITTEN,
    Act("umount /srv/db && hotset tier destroy shop --yes && mount -o loop /srv/disk /srv/db"),
    _WRITTEN,
    Act(f"umount /srv/db && {_PURGE}"),
    # The account of a version that did not note that it had made it stays, as any of before.
    Act(f"[ -e /srv/made ] || userdel hotset; {_GONE.command}"),
)

FAULTS = (
    Act("apt-get update"),
    # All that it asks for, so that what fails is only what is to. Noted: room for its files in a
    # tmpfs, which has pages of 4 KiB, and for a part of what is compiled of them.
    Act(
        f"{_BARE} && find /usr/lib/hotset -type f ! -name '*.pyc' -printf '%s\\n' |"
        " awk '{pages += int(($1 + 4095) / 4096)} END {print pages * 4 + 8192}' > /srv/kib"
        " && dpkg --purge hotset"
    ),
    Act("mkdir /usr/lib/hotset && mount -t tmpfs -o size=60m tmpfs /usr/lib/hotset"),
    Act("dpkg --install hotset_*.deb", 1, says="No space left on device"),
    Act("mount -o remount,size=$(cat /srv/kib)k /usr/lib/hotset"),
    Act("dpkg --install hotset_*.deb", says="is the disk full?"),
    _WHOLE,
    Act("dpkg --purge hotset; mount -o remount,ro /usr/lib/hotset"),
    Act("dpkg --install hotset_*.deb", 1, says="Read-only file system"),
    Act("umount /usr/lib/hotset && mount -t tmpfs -o ro tmpfs /opt"),
    Act("dpkg --install hotset_*.deb"),
    _WHOLE,
    Act("umount /opt && dpkg --purge hotset"),
    Act(
        "dpkg --install hotset_*.deb & until [ -e /usr/lib/hotset/lib/python3/site-packages ];"
        " do sleep 0.05; done; kill -KILL $!; wait; ! hotset --version; dpkg --audit",
        says="hotset",
    ),
    Act("dpkg --configure -a; dpkg --install hotset_*.deb"),
    _WHOLE,
    _FOREIGN,
    Act("dpkg --install foreign.deb", 1, says="does not match system"),
    _WHOLE,
    Act(
        "ln -s /bin/true /usr/local/bin/hotset && dpkg --install hotset_*.deb",
        says="another hotset",
    ),
    Act("rm /usr/local/bin/hotset"),
    _NEXT,
    Act(
        "dpkg --install next.deb && dpkg --install hotset-bench_*.deb", 1, says="depends on hotset"
    ),
    Act("dpkg --purge hotset-bench && rm /usr/lib/hotset/lib/python3.*"),
    Act("hotset --version", 3, says="make /usr/bin/python3 the system's own"),
)

OLD = (
    Act("apt-get update"),
    Act(_BARE, FAILED_APT, says="python3 (>= 3.11)"),
    Act("dpkg --install hotset_*.deb", 1, says="python3 (>= 3.11)"),
    Act("dpkg --purge hotset && test ! -e /usr/lib/hotset"),
)

SQL_SERVER = (
    Act("apt-get update"),
    Act(f"{_INSTALL} ./hotset_*.deb ./hotset-bench_*.deb tdsodbc"),
    *(
        Act(f'hotset {words} --engine sqlserver --dsn "$HOTSET_SQLSERVER_DSN"')
        for name, words in ACTS.items()
        if name.startswith(("connect", "TPC-"))
    ),
)
"""As docs/sql-server.md has it: nothing else comes before the first connection."""

WALKS = {
    "first": FIRST,
    "day": DAY,
    "sqlserver": SQL_SERVER,
    "lab": LAB,
    "life": LIFE,
    "upgrade": UPGRADE,
    "faults": FAULTS,
    "too-old": OLD,
}


def main() -> int:
    if sys.argv[1:2] == ["--inside"]:
        return inside(*sys.argv[2:])
    options = _options()
    if os.geteuid() != 0:
        print("try_packages.py: only root can unpack and enter whole systems", file=sys.stderr)
        return 3
    packages = sorted(options.dist.glob("hotset*.deb"))
    if len(packages) != 2:
        print(
            f"try_packages.py: {options.dist} has not both packages: make release", file=sys.stderr
        )
        return 3
    remove_on_signals()
    steps: list[Step] = []
    for system in options.system:
        base = build_base(system, options.work)
        for walk in options.walk:
            steps += try_out(base, system, walk, packages, options)
            print(table(steps), flush=True)
    slow = [step for step in steps if step.command == "first hit ratio" and not step.expected]
    for step in slow:
        print(f"{step.system}: {step.seconds} s to the first hit ratio, more than {FIRST_MAX_S}")
    return 0 if all(step.expected for step in steps) else 4


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the packages are")
    parser.add_argument(
        "--before", type=Path, metavar="DEB", help="of walk upgrade: `hotset` of an earlier version"
    )
    parser.add_argument("--system", choices=SUITES | TOO_OLD, action="append")
    parser.add_argument("--walk", choices=WALKS, action="append", help="default: first")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/hotset-bare-systems"))  # noqa: S108
    options = parser.parse_args()
    options.system = options.system or list(SUITES)
    options.walk = options.walk or ["first"]
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def try_out(
    base: Path, system: str, walk: str, packages: Sequence[Path], options: argparse.Namespace
) -> list[Step]:
    """A walk in a fresh copy of the system, which is removed afterwards."""
    work: Path = options.work
    logs = work / f"packages-{system}-{walk}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    with unpacked(base, f"packages-{system}-{walk}", work) as root:
        for package in packages:
            shutil.copy(package, root / "root" / package.name)
        if options.before:
            shutil.copy(options.before, root / "root/before.deb")
        call_inside("release.bare.try_packages", [str(root), str(logs), system, walk])
    return [Step(**fields) for fields in json.loads((logs / "steps.json").read_text())]


def inside(root: str, logs: str, system: str, walk: str) -> int:
    """In new namespaces: make the folder the root of all there is, then walk."""
    results = os.open(logs, os.O_RDONLY | os.O_DIRECTORY)
    log = os.fdopen(os.open("log", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=results), "w")
    enter(Path(root))
    steps: list[Step] = []
    for step in walk_acts(system, WALKS[walk], log):
        steps.append(step)
        write(steps, results)
    return 0


def walk_acts(system: str, walk: Sequence[Act], log: TextIO) -> Iterator[Step]:
    """Each command, up to the first that does not end as it has to: what follows would mean
    nothing."""
    total_s = 0.0
    for act in walk:
        step, text = execute(system, "root", act.command, log, HOME, act.code)
        step = replace(step, expected=step.expected and act.says in text)
        total_s += step.seconds
        yield step
        if not step.expected:
            execute(system, "root", _ABANDON, log, HOME)
            return
        if act is _HIT_RATIO:
            fits = total_s <= FIRST_MAX_S
            yield Step(system, "root", "first hit ratio", round(total_s, 1), 0, fits, "in all")


if __name__ == "__main__":
    sys.exit(main())
