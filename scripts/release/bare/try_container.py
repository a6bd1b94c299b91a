"""Runs the image of `make container` for real, without a daemon, and asks everything of it.

umoci unpacks the image, crun runs it on the network of this computer: with a root file system that
cannot be written to, as the image's user and as one of another number, with its state in a folder,
its password in a file. PostgreSQL, Prometheus and what poses as SQL Server run beside it, and a
bare Debian as the server whose disk it accelerates. Needs root, and Debian's packages umoci, crun,
mmdebstrap, postgresql and prometheus; what was seen is printed, the first thing amiss ends it.

    make container TRY=1
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncssh

from hotset import __version__
from hotset.core.clock import wait_until
from hotset.core.machines.local import free_port
from release.bare.acts import DAY, EVENING
from release.bare.server import Server
from release.bare.unpack import build_base, unpacked
from release.container import ALIVE, HOME, PORT, USER

ROOT = Path(__file__).resolve().parents[3]
PASSWORD, DATABASE_PASSWORD = "correct horse battery", "staple-of-the-database"
LIMIT_S, ACT_LIMIT_S = 60.0, 600.0
# crun reads the version of cgroups from what is mounted, and knows no hybrid.
_MOUNT = 'mount -t cgroup2 none /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"'
CRUN = ("unshare", "-m", "sh", "-c", _MOUNT, "crun")
KEYS, SYSTEM = ("ssh-key", "known-hosts"), "debian12"
SERVED = ("umoci", "crun", "prometheus", "promtool")


@dataclass(frozen=True, slots=True)
class Container:
    """One that runs. ``log``: all that it said."""

    name: str
    user: int
    log: Path

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CRUN, "exec", f"--user={self.user}:0", self.name, *argv],
            check=False, capture_output=True, text=True, timeout=ACT_LIMIT_S,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reached:
    """A server that the container is to reach."""

    server: Server
    address: str

    @property
    def environment(self) -> tuple[str, ...]:
        """Environment as in `containers/server.yaml`."""
        return (
            f"HOTSET_MACHINE={self.address}",
            *(f"HOTSET_{name.replace('-', '_').upper()}=/run/secrets/{name}" for name in KEYS),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="has the image")
    default = Path("/var/tmp/hotset-bare-systems")  # noqa: S108 - kept for the next time
    parser.add_argument("--work", type=Path, default=default, help="has the server's archive")
    given = parser.parse_args()
    lacking = [program for program in SERVED if shutil.which(program) is None]
    if os.geteuid() or lacking:
        print(f"try_container: needs root, and lacks: {', '.join(lacking)}", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="hotset-try-") as folder:
        work = Path(folder)
        work.chmod(0o755)
        unpack(given.dist, work)
        with served(work, given.work) as reached:
            for user in (USER, 1_234_567):
                try_as(user, work / str(user), work, reached)
    return 0


def say(what: str, seen: object) -> None:
    print(f"{what}: {seen}", flush=True)


def require(holds: bool, what: str, seen: object) -> None:
    if not holds:
        raise SystemExit(f"try_container: {what}: {seen}")
    say(what, seen)


def unpack(dist: Path, work: Path) -> None:
    (archive,) = dist.glob(f"hotset-{__version__}-container-*.tar")
    (work / "layout").mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", work / "layout"], check=True)
    image = f"{work / 'layout'}:{__version__}"
    subprocess.run(["umoci", "unpack", "--image", image, str(work / "bundle")], check=True)
    used = subprocess.run(
        ["du", "-sm", work / "bundle/rootfs"], check=True, capture_output=True, text=True
    )
    say(
        "image, MB packed and unpacked",
        f"{archive.stat().st_size / 1e6:.0f}, {used.stdout.split()[0]}",
    )


def try_as(user: int, folder: Path, work: Path, reached: Reached) -> None:
    """All of it as a user of this number, in the group root."""
    say("user", user)
    state, secrets = folder / "state", folder / "secrets"
    secrets.mkdir(parents=True)
    state.mkdir()
    os.chown(state, 10001, 0)
    state.chmod(0o2770)
    (secrets / "console-password").write_text(f"{PASSWORD}\n")
    known = [PASSWORD, DATABASE_PASSWORD]
    with running(work / "bundle", user, state, secrets) as container:
        try_console(container)
        known += try_api(container)
        try_limits(container)
        with tempfile.TemporaryDirectory(prefix="hotset-pg-") as cluster:
            try_database(known[-2], Path(cluster))
        try_sql_server(known[-2], folder)
    shown = container.log.read_text()
    require(not any(secret in shown for secret in known), "secrets in the log", "none")
    kept = "".join(file.read_text(errors="replace") for file in state.rglob("*") if file.is_file())
    require(not any(secret in kept for secret in known), "secrets in the state's files", "none")
    (secrets / "console-password").unlink()
    for name in KEYS:
        shutil.copy(work / name, secrets)
    with running(work / "bundle", user, state, secrets, reached.environment) as container:
        require(is_logged_in(PASSWORD), "log-in after a new start, without the file", "worked")
        code, text = ask("/metrics", known[-1])
        require(code == 200 and text.endswith("# EOF\n"), "/metrics of a server", text[-80:])
        try_prometheus(known[-1], folder)
        if user == USER:
            try_day(container, reached.server)


@contextmanager
def served(folder: Path, kept: Path) -> Iterator[Reached]:
    """A bare Debian with PostgreSQL and an sshd.

    :param folder: gets :data:`KEYS`.
    :param kept: has what it is unpacked from.
    """
    key, port = asyncssh.generate_private_key("ssh-ed25519"), free_port()
    files = [folder / name for name in KEYS]
    key.write_private_key(str(files[0]))
    kept.mkdir(parents=True, exist_ok=True)
    with unpacked(build_base(SYSTEM, kept), "container", kept) as root:
        (root / "root/.ssh").mkdir(mode=0o700)
        key.write_public_key(str(root / "root/.ssh/authorized_keys"))
        server = Server(root)
        server.boot()
        try:
            server.install(("openssh-server", "postgresql"))
            shown = (root / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
            files[1].write_text(f"[127.0.0.1]:{port} {shown}")
            for file in files:
                file.chmod(0o644)
            server.sh(f"mkdir -p /run/sshd; /usr/sbin/sshd -p {port} -o ListenAddress=127.0.0.1")
            yield Reached(server, f"ssh://root@127.0.0.1:{port}")
        finally:
            server.power_off()


@contextmanager
def running(
    bundle: Path, user: int, state: Path, secrets: Path, environment: Sequence[str] = ()
) -> Iterator[Container]:
    """The image's own command, at the loopback; ended by SIGTERM, which has to take no more than a
    moment."""
    spec = json.loads((bundle / "config.json").read_text())
    configure(spec, user, state, secrets)
    spec["process"]["env"] += environment
    own = state.parent / "bundle"
    own.mkdir(exist_ok=True)
    (own / "config.json").write_text(json.dumps(spec | {"root": {
        "path": str(bundle / "rootfs"), "readonly": True}}))  # fmt: skip
    name, log = f"hotset-try-{os.getpid()}", state.parent / "log"
    with log.open("a") as file:
        argv = [*CRUN, "run", "--bundle", str(own), name]
        process = subprocess.Popen(argv, stdout=file, stderr=file)
    container = Container(name, user, log)
    try:
        began = time.monotonic()
        wait_until(answers, LIMIT_S, ended=lambda: process.poll() is not None)
        require(answers(), "seconds to the first answer", round(time.monotonic() - began, 1))
        yield container
        began = time.monotonic()
        subprocess.run(
            [
                "sh",
                "-c",
                f"kill -TERM $(crun state {name} | sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p')",
            ],
            check=True,
        )
        code = process.wait(LIMIT_S)
        took = time.monotonic() - began
        require(code == 0 and took < 3, "SIGTERM: code, seconds", f"{code}, {took:.2f}")
    finally:
        if process.poll() is None:
            process.kill()
            subprocess.run(["crun", "delete", "--force", name], check=False)


def configure(spec: dict[str, Any], user: int, state: Path, secrets: Path) -> None:
    """Set what an engine would be given: the host's network, nothing writable but the state."""
    process, linux = spec["process"], spec["linux"]
    process |= {"terminal": False, "user": {"uid": user, "gid": 0}, "noNewPrivileges": True}
    process["capabilities"] = {}
    process["env"].append("HOTSET_CONSOLE_PASSWORD_FILE=/run/secrets/console-password")
    process["args"][process["args"].index("0.0.0.0")] = "127.0.0.1"  # noqa: S104
    linux["namespaces"] = [
        namespace for namespace in linux["namespaces"] if namespace["type"] != "network"
    ]
    linux.pop("resources", None)
    mounts = [
        mount for mount in spec["mounts"] if mount["destination"] not in (HOME, "/sys/fs/cgroup")
    ]
    for source, target, how in ((state, HOME, "rw"), (secrets, "/run/secrets", "ro")):
        options = ["rbind", how]
        mounts.append(
            {"destination": target, "type": "bind", "source": str(source), "options": options}
        )
    mounts.append({"destination": "/tmp", "type": "tmpfs", "source": "none", "options": ["rw"]})  # noqa: S108 - as compose has it
    spec["mounts"] = mounts


def try_console(container: Container) -> None:
    done = container.run("python3", "-c", ALIVE)
    require(done.returncode == 0, "health check", done.returncode)
    require(not is_logged_in("a wrong password"), "log-in with a wrong password", "refused")
    require(is_logged_in(PASSWORD), "log-in", "worked")


def try_api(container: Container) -> list[str]:
    """Returns the tokens, of which the log may show none: the last is the exporter's."""
    tokens = []
    for right in ("operate", "metrics"):
        made = container.run("hotset", "console", "token", "create", right, "--right", right)
        require(made.returncode == 0, f"a token to {right}", made.stderr or "made")
        tokens.append(made.stdout.strip())
    require(ask("/api/v1/jobs")[0] == 401, "API without a token", 401)
    require(ask("/api/v1/jobs", tokens[0])[0] == 200, "API with a token", 200)
    code, text = ask("/metrics", tokens[1])
    require(code == 409 and "ssh://root@HOST" in text, "/metrics without a server", text[:200])
    return tokens


def try_limits(container: Container) -> None:
    done = container.run("hotset", "tier", "status")
    require(is_refused(done), "tier status in it", done.stderr.strip())
    done = container.run("hotset", "lab", "up")
    require(is_refused(done), "lab up in it", done.stderr.strip()[-200:])
    done = container.run("python3", "-c", "open('/x', 'w')")
    require("Read-only file system" in done.stderr, "writing to its root", "refused")
    require(container.run("cc", "--version").returncode != 0, "a compiler in it", "none")


def is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    """True if it was refused, in one sentence, as this is the host's."""
    lines = done.stderr.splitlines()
    return done.returncode == 3 and len(lines) == 1 and "are the host's" in lines[0]


def try_database(token: str, folder: Path) -> None:
    """A PostgreSQL beside it, which it reads with a password out of the request."""
    programs, port = max(Path("/usr/lib/postgresql").iterdir()) / "bin", free_port()
    shutil.chown(folder, "postgres")
    (folder / "password").write_text(DATABASE_PASSWORD)
    (folder / "password").chmod(0o644)
    data, as_postgres = str(folder / "data"), ["runuser", "-u", "postgres", "--"]
    initdb = [
        str(programs / "initdb"),
        "-A",
        "scram-sha-256",
        f"--pwfile={folder / 'password'}",
        data,
    ]
    subprocess.run([*as_postgres, *initdb], check=True, stdout=subprocess.DEVNULL, cwd="/")
    control = [*as_postgres, str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log")]
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    subprocess.run(
        [*control, "-o", options, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/"
    )
    try:
        body = {
            "engine": "postgres",
            "dsn": f"host=127.0.0.1 port={port} user=postgres dbname=postgres",
            "password": DATABASE_PASSWORD,
        }
        code, text = ask("/api/v1/database/show", token, body)
        require(code == 200, "PostgreSQL read through the API", text[:160])
        code, text = ask("/api/v1/database/show", token, body | {"password": "wrong"})
        require(code >= 400 and "wrong" not in text, "with a wrong password", code)
    finally:
        subprocess.run(
            [*control, "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL, cwd="/"
        )


def try_sql_server(token: str, folder: Path) -> None:
    """One whose certificate nobody signed sees no password, unless it is trusted."""
    port, seen = free_port(), folder / "logins"
    argv = [sys.executable, "tests/tds_server.py", str(port), str(folder)]
    with seen.open("w") as log:
        process = subprocess.Popen(argv, stdout=log, cwd=ROOT / "harness")
    body = {"engine": "sqlserver", "password": DATABASE_PASSWORD}
    body["dsn"] = f"sqlserver://sa@127.0.0.1:{port}/shop"
    try:
        # Before its key is made it takes no connection.
        wait_until(lambda: "refused" not in ask("/api/v1/database/show", token, body)[1], LIMIT_S)
        code, text = ask("/api/v1/database/show", token, body)
        require(code >= 400 and "not trusted" in text, "an impostor of SQL Server", text[:300])
        require(not seen.read_text(), "what it saw", "nothing")
        body["dsn"] += "?trust=yes"
        code, text = ask("/api/v1/database/show", token, body)
        require(code >= 400 and "Login failed" in text, "SQL Server that is trusted", text[:300])
        wait_until(lambda: bool(seen.read_text()), LIMIT_S)
        require(seen.read_text() == f"sa {DATABASE_PASSWORD}\n", "what it saw", "the log-in")
    finally:
        process.kill()
        process.wait()


def try_day(container: Container, server: Server) -> None:
    """On a disk of the server. Each act finishes, or names the extra that the image has
    been made without."""
    lacks = container.run("python3", "-c", "import duckdb, altair").returncode != 0
    for act in (*DAY, *EVENING):
        if act.of_server:
            server.sh(act.command)
            continue
        done = container.run("sh", "-c", act.command)
        output = done.stdout + done.stderr
        named = lacks and done.returncode == 3 and "'hotset[" in output
        met = done.returncode == act.code and act.says in output
        require(named or met, act.command, " / ".join(output.splitlines()[-3:]))


def try_prometheus(token: str, folder: Path) -> None:
    """The configuration beside compose.yaml, at this computer's addresses; it reaches the exporter
    and gets the exporter's own answer."""
    (folder / "token").write_text(token)
    text = (ROOT / "containers/prometheus.yml").read_text()
    for old, new in (
        ("hotset:8480", f"127.0.0.1:{PORT}"),
        ("/run/secrets/metrics-token", str(folder / "token")),
        ("30s", "1s"),
    ):
        text = text.replace(old, new)
    (folder / "prometheus.yml").write_text(text)
    shutil.copy(ROOT / "reports/grafana/hotset-rules.yml", folder)
    subprocess.run(["promtool", "check", "config", str(folder / "prometheus.yml")], check=True)
    port = free_port()
    argv = ["prometheus", f"--config.file={folder / 'prometheus.yml'}"]
    argv += [f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_until(lambda: scrape(port), LIMIT_S)
        require(scrape(port).startswith("up"), "Prometheus' target", scrape(port))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)


def scrape(port: int) -> str:
    """How Prometheus fared with the exporter; empty before its first try."""
    try:
        code, text = ask("/api/v1/targets", port=port)
    except OSError:
        return ""
    targets = json.loads(text)["data"]["activeTargets"] if code == 200 else []
    return "; ".join(
        f"{target['health']} {target['lastError']}"
        for target in targets
        if target["health"] != "unknown"
    )


def is_logged_in(password: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=LIMIT_S)
    connection.request("GET", "/login")
    page = connection.getresponse()
    cookie, text = (page.headers["set-cookie"] or "").partition(";")[0], page.read().decode()
    match = re.search(r'name="csrf" value="([^"]+)"', text)
    assert match, text
    body = urlencode({"csrf": match[1], "password": password})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
    connection.request("POST", "/login", body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status == 303


def ask(
    path: str, token: str = "", body: dict[str, str] | None = None, port: int = PORT
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is None:
        connection.request("GET", path, headers=headers)
    else:
        headers["Content-Type"] = "application/json"
        connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def answers() -> bool:
    try:
        return ask("/healthz")[0] == 200
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
