"""An example for each cmdlet: with what it needs, or one by hand where there is more to show."""

from __future__ import annotations

from collections.abc import Iterator

from .cmdlets import Cmdlet

_VALUES = {
    "Cache": "100GiB",
    "Card": "card1",
    "Database": "oltp",
    "Device": "/dev/disk/by-id/scsi-slow",
    "Disk": "shop",
    "Dsn": "sqlserver://db1/shop",
    "File": "/srv/hotset/shop.toml",
    "Flash": "/dev/disk/by-id/nvme-fast",
    "Folder": "F:\\tempdb",
    "Member": "3",
    "Name": "shop-morning",
    "Origin": "/dev/disk/by-id/scsi-slow",
    "Output": "/srv/hotset/shop.snapshot",
    "Recording": "/srv/hotset/blkparse.txt",
    "Run": "last",
    "Scale": "100",
    "Socket": "/srv/hotset/array.sock",
    "Target": "table:dbo.orders",
    "Trace": "/srv/hotset/shop.trace",
    "Warehouses": "5000",
}
_OWN = {
    "database memory": [
        (
            "Set-HotsetDatabaseMemory sqlserver://db1/master -Credential sa -Size 8GiB -WhatIf",
            "Shows the statements that would run, without running them.",
        ),
    ],
    "disk models": [("Get-HotsetDiskModel | Sort-Object IopsQd32", "")],
    "heat top": [
        (
            "Get-HotsetHeat shop -By table -Dsn sqlserver://db1/shop -Credential sa",
            "The hottest tables of a database's disk.",
        )
    ],
    "runs rm": [
        ("Get-HotsetRun | Where-Object State -eq failed | Remove-HotsetRun -Confirm:$false", "")
    ],
    "tier create": [
        (
            "New-HotsetTier shop -Flash /dev/disk/by-id/nvme-fast -Origin"
            " /dev/disk/by-id/scsi-slow -Cache 100GiB -Database oltp -WhatIf",
            "Every command that would run on the server; none runs.",
        ),
    ],
    "sql run": [
        (
            "Invoke-HotsetSql sqlserver://db1/shop -Credential sa -Users 32 -Script"
            " /srv/sql/checkout.sql@70, /srv/sql/search.sql@30 | Select-Object Tps, Thresholds",
            "Your own transactions per second.",
        ),
    ],
    "tier flush": [("Get-HotsetTier | Where-Object DirtyBytes -gt 1GB | Sync-HotsetTier", "")],
    "tier status": [
        (
            "Get-HotsetTier -Connection (Get-HotsetConnection) | Sort-Object HitRatio",
            "The disks of all connected servers, lowest hit ratio first.",
        ),
        ("Get-HotsetTier | Where-Object DirtyBytes -gt 1GB", ""),
    ],
    "tpcc run": [
        (
            "(Invoke-HotsetTpcc sqlserver://db1/tpcc -Credential sa -Users 32"
            " -Warehouses 100).Nopm",
            "New orders per minute.",
        ),
        (
            "Invoke-HotsetTpcc sqlserver://db1/tpcc -Credential sa -Users 1, 2, 4, 8, 16 |"
            " Select-Object Users, Nopm",
            "A curve over users.",
        ),
    ],
    "tpch run": [
        (
            "(Invoke-HotsetTpch sqlserver://db1/tpch -Credential sa -Queries 1, 6,"
            " 21).Power.Queries | Sort-Object Seconds",
            "",
        ),
    ],
    "warmup plan": [
        (
            "Get-HotsetWarmupPlan database:shop -Dsn sqlserver://db1/shop -Credential sa",
            "How much of the database fits in the cache, how much is cached already, and how long"
            " the rest takes.",
        ),
    ],
    "warmup share": [
        (
            "Add-HotsetShare database:shop -Guarantee 40% -Disk shop -Dsn sqlserver://db1/shop"
            " -Credential sa | Wait-HotsetJob",
            "A scan of another database can then take at most 60 % of the cache.",
        ),
    ],
    "warmup run": [
        (
            "Start-HotsetWarmup table:dbo.orders, index:IX_orders -Dsn sqlserver://db1/shop"
            " -Credential sa | Wait-HotsetJob",
            "Caches a table and its index, shows a progress bar, returns what was fetched.",
        ),
        (
            "Get-DbaDatabase -SqlInstance db1 -Database shop | Start-HotsetWarmup -Credential sa",
            "A step of a dbatools script.",
        ),
        (
            "'heat' | Start-HotsetWarmup -Disk shop -Rate 50MB/s",
            "The hottest blocks first, at no more than 50 MB/s.",
        ),
    ],
    "warmup schedule add": [
        (
            "Register-HotsetWarmupSchedule heat -Disk shop -At 'Mon..Fri 06:00'",
            "Every working day at six, on the server, whoever is logged in.",
        )
    ],
    "whatif trace convert": [
        (
            "Import-HotsetTrace /srv/hotset/blkparse.txt -Recorder blkparse -Output"
            " /srv/hotset/shop.trace",
            "",
        ),
    ],
    "whatif simulate": [
        (
            "(Invoke-HotsetSimulation /srv/hotset/shop.trace -Policy hotset, smq -Cache 10GiB,"
            " 20GiB).Caches | Sort-Object HitRatio",
            "",
        ),
    ],
    "whatif check": [("Test-HotsetPrediction last -By 20261121-220932-demo", "")],
    "whatif predict": [("Get-HotsetPrediction last -Users 64 -HitRatio 0.8, 0.9, 0.95", "")],
}


def examples(cmdlet: Cmdlet) -> Iterator[tuple[str, str]]:
    """Yield example commands with their descriptions."""
    own = _OWN.get(cmdlet.operation.name, [])
    yield from own
    if own:
        return
    words = [cmdlet.name]
    by_place = sorted(
        (parameter for parameter in cmdlet.parameters if parameter.position is not None),
        key=lambda parameter: parameter.position or 0,
    )
    words += [_VALUES[parameter.name] for parameter in by_place if parameter.mandatory]
    for parameter in cmdlet.parameters:
        if parameter.mandatory and parameter.position is None:
            words.append(f"-{parameter.name} {_VALUES.get(parameter.name) or parameter.allowed[0]}")
        elif parameter.name == "Credential" and any(
            p.name == "Dsn" and p.mandatory for p in cmdlet.parameters
        ):
            words.append("-Credential sa")
    key = cmdlet.first_where(key=True)
    if key is not None and not key.mandatory:
        words.insert(1, _VALUES[key.name])
    yield " ".join(words), ""
