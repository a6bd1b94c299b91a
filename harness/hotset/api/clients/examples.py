"""An example for each cmdlet: with what it needs, or one by hand where there is more to show."""

from __future__ import annotations

from collections.abc import Iterator

from .cmdlets import Cmdlet

_SHOP = "sqlserver://db1/shop?trust=yes"
_VALUES = {
    "Cache": "100GiB",
    "Database": "oltp",
    "Device": "/dev/disk/by-id/scsi-slow",
    "Disk": "shop",
    "Dsn": _SHOP,
    "File": "/srv/hotset/shop.toml",
    "Flash": "/dev/disk/by-id/nvme-fast",
    "FlashName": "main",
    "Folder": "/volume/tempdb",
    "Member": "3",
    "Name": "shop-morning",
    "Origin": "/dev/disk/by-id/scsi-slow",
    "Output": "/srv/hotset/shop.snapshot",
    "Recording": "/srv/hotset/blkparse.txt",
    "Run": "last",
    "Scale": "100",
    "Socket": "/srv/hotset/array.sock",
    "Target": "database:shop",
    "Trace": "/srv/hotset/shop.trace",
    "Warehouses": "5000",
}
_OWN = {
    "database memory": [
        (
            f"Set-HotsetDatabaseMemory {_SHOP} -Credential sa -Size 8GiB -WhatIf",
            "Shows the statements that would run, without running them.",
        ),
    ],
    "disk models": [("Get-HotsetDiskModel | Sort-Object IopsQd32", "")],
    "heat top": [
        (
            "Get-HotsetHeat shop -By table -Dsn postgresql://db1/shop -Credential app",
            "The hottest tables of a PostgreSQL database; SQL Server's are told apart by file.",
        )
    ],
    "report hit-ratio": [
        ("(Get-HotsetHitRatio shop).HitRatio", ""),
        (
            f"Get-HotsetHitRatio shop -By database -Since 8h -Dsn {_SHOP} -Credential sa |"
            " Sort-Object HitRatio",
            "",
        ),
        (
            "Get-HotsetHitRatio shop -By table -Since 8h -Dsn postgresql://db1/shop -Credential app"
            " | Sort-Object HitRatio",
            "",
        ),
        ("Get-HotsetHitRatio shop -Wait | Format-Table Ended, Reads, HitRatio", ""),
    ],
    "runs compare": [
        ("Compare-HotsetRun 20261120-2015, last", ""),
        (
            "Get-HotsetRun | Select-Object -First 2 | Compare-HotsetRun -Force",
            "Objects are put into the order of their time; names keep theirs.",
        ),
    ],
    "runs list": [
        ("Get-HotsetRun | Where-Object Significant | Sort-Object Factor -Descending", ""),
        ("(Get-HotsetRun last).Experiment", ""),
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
            f"Invoke-HotsetSql {_SHOP} -Credential sa -Users 32 -Script"
            " /srv/sql/checkout.sql@70, /srv/sql/search.sql@30 | Select-Object Tps, Thresholds",
            "Your own transactions per second.",
        ),
    ],
    "tier explain": [
        (
            "Get-HotsetExplanation -Name orders -Disk shop -Dsn postgresql://db1/shop"
            " -Credential app",
            "Why a table of PostgreSQL is cached, or is not.",
        ),
    ],
    "tier resize": [
        ("Resize-HotsetTier shop -Cache (150GB) -PassThru", "A number is bytes: 150GB is 150 GiB."),
    ],
    "tier set": [
        ("Set-HotsetTier shop -Mode writethrough -WhatIf", ""),
        ("Get-HotsetTier | Set-HotsetTier -Policy smq -PassThru", ""),
    ],
    "tpcc build": [
        (
            "New-HotsetTpccDatabase sqlserver://db1/tpcc?trust=yes -Credential sa -Warehouses 100",
            "",
        ),
    ],
    "whatif trace tpcc": [
        ("New-HotsetTpccTrace -Warehouses 100 -Output /srv/hotset/tpcc.trace", ""),
    ],
    "whatif trace tpch": [
        ("New-HotsetTpchTrace -Scale 10 -Output /srv/hotset/tpch.trace", ""),
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
            "(Invoke-HotsetTpcc sqlserver://db1/tpcc?trust=yes -Credential sa -Users 32"
            " -Warehouses 100).Nopm",
            "New orders per minute.",
        ),
        (
            "Invoke-HotsetTpcc sqlserver://db1/tpcc?trust=yes -Credential sa -Users 1, 2, 4, 8 |"
            " Select-Object Users, Nopm",
            "A curve over users.",
        ),
    ],
    "tpch run": [
        (
            "(Invoke-HotsetTpch sqlserver://db1/tpch?trust=yes -Credential sa -Queries 1, 6,"
            " 21).PowerArms.Repeats.Queries | Sort-Object Seconds",
            "",
        ),
    ],
    "warmup exclude": [
        (f"Add-HotsetExclusion database:archive -Dsn {_SHOP} -Credential sa", ""),
    ],
    "warmup pin": [(f"Add-HotsetPin database:shop -Dsn {_SHOP} -Credential sa", "")],
    "warmup plan": [
        (
            f"Get-HotsetWarmupPlan database:shop -Dsn {_SHOP} -Credential sa",
            "How much of the database fits in the cache, how much is cached already, and how long"
            " the rest takes.",
        ),
    ],
    "warmup share": [
        (
            f"Add-HotsetShare database:shop -Guarantee 40% -Disk shop -Dsn {_SHOP}"
            " -Credential sa | Wait-HotsetJob",
            "A scan of another database can then take at most 60 % of the cache.",
        ),
    ],
    "warmup run": [
        (
            f"Start-HotsetWarmup database:shop -Dsn {_SHOP} -Credential sa | Wait-HotsetJob",
            "Caches a database, shows a progress bar, returns what was fetched.",
        ),
        (
            "Start-HotsetWarmup table:public.orders, index:orders_pkey -Dsn postgresql://db1/shop"
            " -Credential app | Wait-HotsetJob",
            "The same of a table and its index, on PostgreSQL.",
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
            "Every working day at six, on the server, whether or not a user is logged in.",
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
    "whatif advise": [
        (
            "Get-HotsetCacheAdvice /srv/hotset/shop.trace -Run last -StorageIops '1:126,16:850'",
            "-StorageIops is what the slow storage gives at queue depths 1 and 16, where the run"
            " did not measure it.",
        )
    ],
    "whatif predict": [
        (
            "Get-HotsetPrediction last -Users 64 -HitRatio 0.8, 0.9, 0.95 -StorageIops"
            " '1:126,16:850'",
            "",
        )
    ],
}


def _value(cmdlet: Cmdlet, name: str) -> str:
    """An example of a parameter's value, as this operation means it."""
    word, _, rest = cmdlet.operation.name.partition(" ")
    if name == "Dsn" and word in ("tpcc", "tpch"):
        return _SHOP.replace("/shop", f"/{word}")
    if word == "whatif" and name == "Output":
        return _VALUES["Trace"]
    return (
        _VALUES["Output"]
        if (word, rest) == ("warmup", "restore") and name == "File"
        else _VALUES[name]
    )


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
    words += [_value(cmdlet, parameter.name) for parameter in by_place if parameter.mandatory]
    for parameter in cmdlet.parameters:
        if parameter.mandatory and parameter.position is None:
            value = parameter.allowed[0] if parameter.allowed else _value(cmdlet, parameter.name)
            words.append(f"-{parameter.name} {value}")
        elif parameter.name == "Credential" and any(
            p.name == "Dsn" and p.mandatory for p in cmdlet.parameters
        ):
            words.append("-Credential sa")
    key = cmdlet.first_where(key=True)
    if key is not None and not key.mandatory:
        named = _value(cmdlet, key.name)
        first = [named] if key.position == 0 else [f"-{key.name}", named]
        words = [words[0], *first, *words[1:]] if key.position == 0 else [*words, *first]
    yield " ".join(words), ""
