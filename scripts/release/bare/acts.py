"""Everyday commands of a user who has installed hotset: those that the walks over the packages and
over the container have in common.

Each verb that starts processes of its own is among them: an installation can break that, and a
checkout does not show it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Act:
    """A command, the code it has to end with, and what it has to say.

    :ivar of_server: it is given on the server whose disk it is, wherever hotset is.
    """

    command: str
    code: int = 0
    says: str = ""
    of_server: bool = False


def _on_server(command: str) -> Act:
    return Act(command, of_server=True)


def as_postgres(*commands: str) -> Act:
    return _on_server(
        f"for one in {' '.join(map(shlex.quote, commands))}; do"
        " runuser -u postgres -- env PGPORT=5433 $one || exit; done"
    )


FILES = _on_server(
    "truncate --size 2G /srv/disk && mkfs.ext4 -q /srv/disk && truncate --size 1G /srv/flash"
)
CREATE = Act(
    "hotset tier create shop --kind userspace --flash /srv/flash --origin /srv/disk"
    " --database oltp --cache 512MiB --yes"
)
MOUNT = _on_server("mkdir /srv/db && mount /dev/hotset/shop /srv/db")
CLUSTER = _on_server(
    "v=$(ls /usr/lib/postgresql); pg_createcluster --datadir /srv/db/shop --port 5433 $v shop"
    " && sed -i 's/scram-sha-256/trust/' /etc/postgresql/$v/shop/pg_hba.conf"
    " && pg_ctlcluster $v shop start"
)
# What the database and the file system remember of the load would keep requests from the disk.
COLD = _on_server(
    "v=$(ls /usr/lib/postgresql); pg_ctlcluster $v shop stop && umount /srv/db"
    " && mount /dev/hotset/shop /srv/db && pg_ctlcluster $v shop start"
)
STOP = _on_server("pg_ctlcluster $(ls /usr/lib/postgresql) shop stop && umount /srv/db")

_TPCC, _TPCH = (
    f"--dsn 'host=127.0.0.1 port=5433 user=postgres dbname={name}'" for name in ("tpcc", "tpch")
)
_SHORT = "--users 2 --rampup 0 --duration 2"
_SQL = "SELECT count(*) FROM hotset_tpcc.warehouse;"
BENCHMARKS = (
    as_postgres("createdb tpcc", "createdb tpch"),
    Act(f"hotset tpcc build --warehouses 1 {_TPCC}", says="all 12 conditions hold"),
    Act(f"hotset tpcc run --warehouses 1 {_SHORT} {_TPCC}", says="NOPM"),
    Act(f"hotset tpch build --scale 0.01 --processes 2 {_TPCH}", says="loaded"),
    Act(f"hotset tpch run --streams 2 {_TPCH}", says="stream 2: query"),
    Act(
        f"echo '{_SQL}' > /tmp/one.sql && hotset sql run --script /tmp/one.sql {_SHORT} {_TPCC}"
        " && hotset runs list --format csv",
        says="-sql,",
    ),
    Act("hotset report last", says=".html"),
)
_TDS = (Path(__file__).parents[3] / "harness/tests/tds_server.py").read_text(encoding="utf-8")
_SHOW = "HOTSET_PASSWORD=Secret-42 hotset database show --engine sqlserver --dsn"
_IMPOSTOR = "sqlserver://sa@localhost:14330/shop"
SQL_SERVER = (
    _on_server(f"cat > /srv/tds.py <<'EOF'\n{_TDS}\nEOF\nmkdir /srv/tds"),
    _on_server(
        "python3 /srv/tds.py 14330 /srv/tds > /srv/logins 2>&1 < /dev/null &"
        " timeout 30 sh -c 'until test -e /srv/tds/evil.example.pem; do sleep 1; done'; sleep 1"
    ),
    Act(f"{_SHOW} {_IMPOSTOR}", 4, says="certificate"),
    _on_server("! grep Secret /srv/logins"),
    Act(f"{_SHOW} '{_IMPOSTOR}?trust=yes'", 4, says="Login failed"),
    _on_server("sleep 1; grep -x 'sa Secret-42' /srv/logins"),
)
"""A server with a certificate of nobody's sees no password, unless it is trusted."""
DAY = (
    # As in a container, and where debootstrap made the system.
    _on_server("rm --force /etc/machine-id"),
    FILES,
    Act(f"{CREATE.command} --dry-run", says="write /etc/hotset/host-id"),
    CREATE,
    Act("hotset tier status", says="active"),
    MOUNT,
    CLUSTER,
    *BENCHMARKS,
    COLD,
    Act(f"hotset warmup run database:tpcc {_TPCC}"),
    Act("hotset heat start shop"),
    # One act with what it is of: where that is refused by name, there are no requests to report.
    Act(
        f"hotset tpcc run --warehouses 1 {_SHORT} {_TPCC}"
        f" && hotset report hit-ratio shop --by table {_TPCC}",
        says="stock",
    ),
    Act("hotset tier watch shop 1 2"),
    Act(f"hotset tier health {_TPCC}; test $? -ne 4", says="shop"),
)
"""The three acts of a day, and all that measures."""
EVENING = (
    STOP,
    Act("hotset tier detach shop"),
    _on_server("mount -o loop /srv/disk /srv/db && test -d /srv/db/shop/base && umount /srv/db"),
)
