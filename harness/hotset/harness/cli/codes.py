"""Exit codes, and which failure ends with which.

==== ===========================================================
code meaning
==== ===========================================================
0    ok
2    wrong usage: flags, experiment file, unknown run
3    this computer lacks something; the message says what to do
4    the run failed: no result
5    a threshold was missed (probe hit ratio, calibration, a database that fails its check)
130  interrupted
==== ===========================================================
"""

from __future__ import annotations

USAGE, LACKS, FAILED, MISSED, INTERRUPTED = 2, 3, 4, 5, 130


def code_of(error: Exception) -> int | None:
    """The exit code for a failure that hotset foresees; None for any other."""
    from hotset.cachelayer import flashdev, machine, takedown, tier
    from hotset.harness import archive, journal, spec, workload
    from hotset.harness.engines import connect
    from hotset.harness.hammerdb import failures
    from hotset.tpcc import consistency, database, native, record, schema
    from hotset.tpch import database as tpch_database
    from hotset.tpch import record as tpch_record
    from hotset.tpch import schema as tpch_schema

    codes: dict[type[Exception], int] = {
        spec.SpecError: USAGE,
        archive.NoSuchRunError: USAGE,
        connect.DsnError: USAGE,
        workload.RefusedError: USAGE,
        flashdev.RefusedError: USAGE,
        failures.HammerdbRefused: USAGE,
        machine.EnvironmentLacksError: LACKS,
        takedown.BusyError: LACKS,
        native.DriverMissing: LACKS,
        journal.ThresholdMissedError: MISSED,
        machine.CommandError: FAILED,
        machine.CommandTimeoutError: FAILED,
        machine.MachineGoneError: FAILED,
        tier.TierFailedError: FAILED,
        tier.WarmupFailedError: FAILED,
        failures.HammerdbFailed: FAILED,
        record.RunFailed: FAILED,
        record.LoadFailed: FAILED,
        schema.SetupError: FAILED,
        consistency.Violated: FAILED,
        database.DatabaseError: FAILED,
        tpch_record.Lacks: LACKS,
        tpch_record.DataFailed: FAILED,
        tpch_record.LoadFailed: FAILED,
        tpch_record.RunFailed: FAILED,
        tpch_schema.SetupError: FAILED,
        tpch_database.DatabaseError: FAILED,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)
