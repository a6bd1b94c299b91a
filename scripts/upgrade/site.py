"""From one version to the other under load, through a reboot, and back.

Each part is a function over a :class:`Site`; what it expects is what `docs/upgrade.md` promises.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, BinaryIO, ClassVar

from campaign.writer import Writer
from hotset.core.machines.base import Result
from hotset.core.waiting import wait_until

from .record import Record, UnmetError
from .server import Server
from .versions import Version

DISK = "shop"
DEVICE = PurePosixPath(f"/dev/hotset/{DISK}")
DATA = PurePosixPath("/srv/db")
FLASH, ORIGIN = PurePosixPath("/srv/flash"), PurePosixPath("/srv/origin")
UNIT = PurePosixPath(f"/etc/systemd/system/hotset-tier-{DISK}.service")
LABELS_AT = (256 * 1024, 320 * 1024)
LABEL_AT, LABEL_END = LABELS_AT[0], 1024 * 1024
RUNS = PurePosixPath("/root/.local/share/hotset/runs")
SNAPSHOT = PurePosixPath("/root/hot.json")
_TRACEBACK = "Traceback (most recent call last)"
_PORTS = {"before": 18480, "this": 18481}
_LIMIT_S = 300.0
_AS_IT_IS: dict[tuple[str, ...], tuple[int, ...]] = {("tier", "health"): (0, 3, 5)}
"""Something may be to be done, or, without systemd, not be known."""
MAKE = f"""
truncate -s 192M {ORIGIN} /srv/other; truncate -s 256M {FLASH}
mke2fs -q -F -t ext4 {ORIGIN}; mkdir -p {DATA}
"""
FILL = f"""
mkdir -p {DATA}/hot {DATA}/pinned {DATA}/shared
for one in hot/1 hot/2 hot/3 hot/4 pinned/1 shared/1; do
    head -c 6000000 /dev/urandom > {DATA}/$one
done
sync
cd {DATA} && find hot pinned shared -type f | sort | xargs sha256sum > /root/sums
"""


@dataclass(slots=True)
class Site:
    """The server of a walk, with both versions and what was written to its disk.

    :ivar written: the writers that have ended, with their files.
    """

    server: Server
    record: Record
    before: Version
    this: Version
    written: list[tuple[Writer, PurePosixPath]] = field(default_factory=list)
    token: str = ""
    PYTHON: ClassVar[str] = "3.13"

    def hotset(
        self,
        version: Version,
        *words: str,
        codes: tuple[int, ...] = (0,),
        limit_s: float = _LIMIT_S,
    ) -> Result:
        """Run a version's command line.

        :raises UnmetError: it ends with another code, or in a traceback.
        """
        done = self.server.run([str(version.hotset), *words], check=False, timeout_s=limit_s)
        said = f"{version.name}: hotset {shlex.join(words)}"
        if _TRACEBACK in done.stderr:
            raise UnmetError(f"{said}: a traceback: {done.stderr.strip().splitlines()[-1]}")
        if done.rc not in codes:
            last = (done.stderr.strip() or done.stdout.strip())[-600:]
            raise UnmetError(f"{said}: code {done.rc}: {last}")
        return done

    def attempt(self, version: Version, words: tuple[str, ...], is_due: bool) -> None:
        """Run a command that is due to succeed, or else to break nothing; notes how it failed.

        :raises UnmetError: it is due, and fails.
        """
        codes = _AS_IT_IS.get(words, (0,)) if is_due else range(6)
        done = self.hotset(version, *words, codes=tuple(codes))
        if done.rc == 0:
            self.record.note("done")
        else:
            last = done.stderr.strip().splitlines()[-1:]
            self.record.note(f"code {done.rc}: {' '.join(last)}")

    def asked(self, version: Version, *words: str, codes: tuple[int, ...] = (0,)) -> Any:  # noqa: ANN401
        """What a command says as JSON."""
        return json.loads(self.hotset(version, *words, "--format", "json", codes=codes).stdout)

    def mount(self) -> None:
        self.server.sh(f"mount {DEVICE} {DATA}")

    def unmount(self) -> None:
        self.server.sh(f"umount {DATA}")

    def check_bytes(self) -> str:
        """Every file as it was written, and every record that was acknowledged; says how many.

        :raises UnmetError: one is not.
        """
        self.server.sh("echo 3 > /proc/sys/vm/drop_caches || :")
        bad = self.server.run(
            ["sh", "-c", f"cd {DATA} && sha256sum --check --quiet /root/sums 2>&1"], check=False
        )
        if bad.rc:
            raise UnmetError(f"files differ: {bad.stdout.strip()}")
        for writer, file in self.written:
            missing = writer.missing(self.server, file)
            if missing:
                raise UnmetError(f"{file.name}: {missing}")
        records = sum(writer.acknowledged for writer, _ in self.written)
        return f"6 files and {records:,} acknowledged records are as written"

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Records are written with fsync all the while; where one is refused, the step fails."""
        file = DATA / f"records-{len(self.written)}"
        writer = Writer(self.server, file)
        try:
            yield writer
            writer.require_more(64)
        finally:
            writer.end()
            self.written.append((writer, file))

    def engine(self) -> tuple[int, str]:
        """Which process the engine is, and its program."""
        pid = self.server.sh(f"cat /run/hotset/engine/{DISK}/pid")
        return int(pid), self.server.sh(f"readlink /proc/{pid}/exe")

    def job_state(self, version: Version, job: str) -> str:
        """As a version's command line tells it; empty: it does not know the job."""
        jobs = self.asked(version, "jobs", "list")["jobs"]
        return next((str(one["state"]) for one in jobs if one["id"] == job), "")

    def require_job(self, version: Version, job: str, state: str) -> None:
        """:raises UnmetError: the job is in another state."""
        found = self.job_state(version, job)
        if found != state:
            raise UnmetError(f"{version.name}: job {job} is {found or 'not known'}")
        self.hotset(version, "jobs", "show", job)

    @contextmanager
    def later_label(self) -> Iterator[None]:
        """Both copies of the flash's label say that they are of a later version, in the block."""
        flash = self.server.path(FLASH)
        with flash.open("r+b") as file:
            kept = {at: _read(file, at) for at in LABELS_AT}
            for at, text in kept.items():
                later = text.replace(b"HOTSET-FLASH-LABEL 1 ", b"HOTSET-FLASH-LABEL 2 ", 1)
                file.seek(at)
                file.write(later)
        try:
            yield
        finally:
            with flash.open("r+b") as file:
                for at, text in kept.items():
                    file.seek(at)
                    file.write(text)

    def label(self) -> str:
        """What lies in the flash's first mebibyte, as a checksum."""
        with self.server.path(FLASH).open("rb") as file:
            file.seek(LABEL_AT)
            return hashlib.sha256(file.read(LABEL_END - LABEL_AT)).hexdigest()

    def unit(self, verb: str) -> Result:
        """Run what systemd would at the machine's start or stop."""
        text = self.server.path(UNIT).read_text()
        command = re.search(rf"^{verb}=(.*)$", text, re.MULTILINE)
        assert command is not None, text
        return self.server.run(shlex.split(command[1]), check=False, timeout_s=_LIMIT_S)

    def reboot(self) -> None:
        """In good order, with the disk's unit.

        :raises UnmetError: the unit fails.
        """
        self.unmount()
        for verb in ("ExecStop", "ExecStart"):
            done = self.unit(verb)
            if done.rc:
                raise UnmetError(f"{verb} ends with code {done.rc}: {done.stderr.strip()}")
            if verb == "ExecStop":
                self.server.power_off()
                self.server.boot()
        self.mount()

    def state(self, version: Version) -> dict[str, Any]:
        """The disk as `tier status` has it.

        :raises UnmetError: it is not active.
        """
        said = self.asked(version, "tier", "status", codes=(0, 5))
        found = next((one for one in _objects(said) if one.get("name") == DISK), None)
        found = found or next((one for one in _objects(said) if one.get("disk") == DISK), None)
        if found is None or found.get("state") != "active":
            raise UnmetError(f"{version.name}: tier status: {json.dumps(found or said)[:400]}")
        return found

    def api(
        self, version: Version, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, Any]:
        """Ask a version's console over HTTP; returns the status and what it answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{_PORTS[version.name]}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    @contextmanager
    def console(self, version: Version) -> Iterator[None]:
        """A version's console, until the end of the block; its jobs go on."""
        argv = [
            "env",
            "HOTSET_CONSOLE_PASSWORD_FILE=/root/password",
            str(version.hotset),
            "console",
        ]
        argv += ["--port", str(_PORTS[version.name])]
        with self.server.popen(argv) as process:
            try:
                up = wait_until(
                    lambda: self._answers(version), 120, ended=lambda: process.poll() is not None
                )
                if not up:
                    raise UnmetError(f"{version.name}: the console does not come up")
                yield
            finally:
                process.terminate()
                process.wait(60)

    def _answers(self, version: Version) -> bool:
        try:
            return self.api(version, "/jobs")[0] == 200
        except (urllib.error.URLError, ConnectionError, subprocess.SubprocessError):
            return False


def _read(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(LABELS_AT[1] - LABELS_AT[0])


def _objects(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """All objects in some JSON."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)
