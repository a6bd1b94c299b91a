"""Makes a container image of console, API and exporter out of the wheel of a release:

    make release container      dist/hotset-VERSION-container-ARCHITECTURE.tar

No daemon and no image of others is needed: Debian's packages are unpacked into a root file system,
Python's come from the lock file, and both are written as an OCI layout that Docker loads as well.
There is neither a compiler nor a package manager in it. The same wheel, lock file and archive of
Debian make the same bytes; HOTSET_DEBIAN_MIRROR may name a snapshot of the archive.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hotset import __version__
from hotset.core.extras import Extra

from . import entry, modules, oci
from .dist import SUMS, sums
from .programs import ARCHITECTURES, CannotBuildError

ROOT = Path(__file__).resolve().parents[2]
SUITE, PYTHON, GLIBC = "trixie", "3.13", "manylinux_2_40"
PACKAGES = (
    "base-files",
    "ca-certificates",
    "dash",
    "libc-bin",
    "libstdc++6",
    "netbase",
    "python3",
    "tzdata",
)
SQLSERVER_PACKAGES = ("libodbc2", "tdsodbc")
BENCH_PACKAGES = ("postgresql-17",)
"""For its pgbench."""
_DRIVERS = "[FreeTDS]\nDriver=libtdsodbc.so\n"
"""Contents of odbcinst.ini, as Debian's package makes it when it is configured."""
USER, GROUP, HOME, PORT = 10001, 0, "/var/lib/hotset", 8480
"""Files belong to the group root, which a user of any number has in OpenShift."""
SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin",
    "HOME": HOME,
    "XDG_CONFIG_HOME": "/etc",
    # Who has no line in /etc/passwd has a name all the same.
    "LOGNAME": "hotset",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HOTSET_CONTAINER": "1",
}
ALIVE = (
    "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8480, timeout=4);"
    " c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"
)
"""Without a proxy, and without hotset's own start."""
LEFT_OUT = re.compile(r"dev/|var/(cache|log)/|var/lib/apt/|etc/apt/")
"""Its host has devices of its own; nobody there uses apt."""
_PASSWD = f"root:x:0:0::/root:/bin/sh\nhotset:x:{USER}:{GROUP}::{HOME}:/bin/sh\n"
_NOT_UNPACKED = ("doc", "man", "locale", "info", "perl5", "bash-completion", "lintian", "debconf")
# $1: the root; $2: what is laid into it. Building it does not take root.
_FILL = f"""\
set -e
cp -R "$2/." "$1/"
cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"
chroot "$1" /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash \
    "/usr/lib/python{PYTHON}" "/{SITE}"
install -d -m 2770 -o {USER} -g {GROUP} "$1{HOME}"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="has the wheel")
    parser.add_argument(
        "--extras",
        type=choose,
        default="console,sqlserver",
        help="of the package: console,bench,sqlserver, or all",
    )
    given = parser.parse_args()
    try:
        image = build(given.dist.resolve(), given.extras)
    except (CannotBuildError, subprocess.CalledProcessError) as error:
        print(f"container: {error}", file=sys.stderr)
        return 3
    print(f"{image.stat().st_size:>12,}  {image.name}")
    return 0


def choose(text: str) -> list[Extra]:
    """Extras as they are named on the command line.

    :raises argparse.ArgumentTypeError: there is none of a name.
    """
    if text == "all":
        return list(Extra)
    try:
        return [Extra(word) for word in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; there are: {', '.join(Extra)}, all") from None


def build(dist: Path, extras: list[Extra]) -> Path:
    """The image of the wheel in ``dist``, beside it.

    :raises CannotBuildError: there is no wheel with programs, or no mmdebstrap.
    """
    wheel = _wheel(dist)
    if shutil.which("mmdebstrap") is None:
        raise CannotBuildError("mmdebstrap is missing: apt-get install mmdebstrap")
    machine = next(
        architecture for architecture in ARCHITECTURES if wheel.stem.endswith(architecture)
    )
    epoch = int(_describe("git", "log", "-1", "--format=%ct"))
    into = dist / f"hotset-{__version__}-container-{machine}.tar"
    with tempfile.TemporaryDirectory(prefix="hotset-container-") as folder:
        laid, root = Path(folder) / "laid", Path(folder) / "root.tar"
        Path(folder).chmod(0o755)
        lay(laid, wheel, machine, extras)
        unpack(root, laid, machine, epoch, extras)
        digest = oci.write(describe(machine, epoch, extras), root, into, epoch, LEFT_OUT)
    (dist / SUMS).write_text(sums(dist), encoding="utf-8")
    print(f"image {digest}", file=sys.stderr)
    return into


def lay(laid: Path, wheel: Path, machine: str, extras: list[Extra]) -> None:
    """Python's packages as the lock file has them, hotset, and what no package brings."""
    site = laid / SITE
    wanted = modules.requirements(ROOT, extras, PYTHON)
    work = laid.with_name("modules")
    modules.install(wanted, [wheel], [PYTHON], machine, site, work, GLIBC)
    modules.move_programs(site, laid / "usr/local/bin")
    for name, text, mode in (
        ("usr/local/bin/hotset", entry.in_container(), 0o755),
        ("etc/passwd", _PASSWD, 0o644),
        ("etc/group", "root:x:0:\n", 0o644),
        ("etc/odbcinst.ini", _DRIVERS if Extra.SQLSERVER in extras else "", 0o644),
    ):
        (laid / name).parent.mkdir(parents=True, exist_ok=True)
        (laid / name).write_text(text)
        (laid / name).chmod(mode)


def unpack(root: Path, laid: Path, machine: str, epoch: int, extras: list[Extra]) -> None:
    """Debian's packages, not configured, with what is laid beside, as a tar."""
    packages = (
        *PACKAGES,
        *(SQLSERVER_PACKAGES if Extra.SQLSERVER in extras else ()),
        *(BENCH_PACKAGES if Extra.BENCH in extras else ()),
    )
    mode = "root" if os.geteuid() == 0 else "unshare"
    fill = laid.with_name("fill.sh")
    fill.write_text(_FILL)
    argv = ["mmdebstrap", "--quiet", f"--mode={mode}", "--variant=extract"]
    argv += [f"--architectures={ARCHITECTURES[machine]}", f"--include={','.join(packages)}"]
    argv += [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _NOT_UNPACKED]
    argv.append(f'--extract-hook=sh {fill} "$1" {laid}')
    mirror = os.environ.get("HOTSET_DEBIAN_MIRROR")
    _run(*argv, SUITE, str(root), *([mirror] if mirror else []), SOURCE_DATE_EPOCH=str(epoch))


def describe(machine: str, epoch: int, extras: list[Extra]) -> oci.Image:
    """Describe the image: its labels, and how it is run."""
    created = datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")
    labels = {
        "org.opencontainers.image.title": "hotset",
        "org.opencontainers.image.description": "Console, API and exporter of hotset",
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.revision": _describe("git", "rev-parse", "HEAD"),
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.base.name": f"debian:{SUITE}",
    }
    config = {
        "User": f"{USER}:{GROUP}",
        "ExposedPorts": {f"{PORT}/tcp": {}},
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
        "Entrypoint": ["hotset"],
        "Cmd": ["console", "--bind", "0.0.0.0", "--insecure"],  # noqa: S104 - the engine publishes it
        "Volumes": {HOME: {}},
        "WorkingDir": HOME,
        "Labels": labels,
        "StopSignal": "SIGTERM",
        "Healthcheck": oci.health(["python3", "-c", ALIVE], 30, 5, 3),
    }
    made_by = f"make container EXTRAS= {','.join(extras)}"
    return oci.Image("hotset", __version__, machine, created, made_by, config, labels)


def _wheel(dist: Path) -> Path:
    wheels = [
        wheel
        for wheel in dist.glob(f"hotset-{__version__}-*.whl")
        if wheel.stem.endswith(tuple(ARCHITECTURES))
    ]
    if len(wheels) != 1:
        raise CannotBuildError(
            f"{dist} has {len(wheels)} wheels of {__version__} with programs, and the image is made"
            " of one: make release"
        )
    return wheels[0]


def _run(*argv: str, **environment: str) -> None:
    subprocess.run(argv, check=True, cwd=ROOT, env=os.environ | environment)


def _describe(*argv: str) -> str:
    return subprocess.run(argv, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
