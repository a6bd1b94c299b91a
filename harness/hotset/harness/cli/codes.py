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


CODES = {
    "hotset.harness.spec.SpecError": USAGE,
    "hotset.harness.archive.NoSuchRunError": USAGE,
    "hotset.harness.engines.connect.DsnError": USAGE,
    "hotset.reports.compare.SetUpsDiffer": USAGE,
    "hotset.reports.publish.NotPublishable": USAGE,
    "hotset.tpcc.schema.AlreadyLoaded": USAGE,
    "hotset.cachelayer.flashdev.RefusedError": USAGE,
    "hotset.cachelayer.card.CardError": USAGE,
    "hotset.cachelayer.traced.NotCountedError": LACKS,
    "hotset.harness.explain.NoSuchOwnerError": USAGE,
    "hotset.cachelayer.choice.ChoiceError": USAGE,
    "hotset.cachelayer.devices.DeviceRefusedError": USAGE,
    "hotset.cachelayer.lifecycle.TierRefusedError": USAGE,
    "hotset.cachelayer.idle.InUseError": LACKS,
    "hotset.cachelayer.targets.TargetError": USAGE,
    "hotset.cachelayer.snapshot.SnapshotError": USAGE,
    "hotset.cachelayer.preferences.PreferencesError": USAGE,
    "hotset.harness.warmups.jobs.NoSuchJobError": USAGE,
    "hotset.harness.api.tokens.TokenError": USAGE,
    "hotset.harness.service.verbs.UnknownVerbError": USAGE,
    "hotset.harness.service.verbs.RefusedError": USAGE,
    "hotset.harness.service.jobs.NoSuchJobError": USAGE,
    "hotset.harness.service.jobs.JobConflictError": LACKS,
    "hotset.harness.warmups.schedule.ScheduleError": USAGE,
    "hotset.cachelayer.machines.MachineNameError": USAGE,
    "hotset.harness.hammerdb.failures.HammerdbRefused": USAGE,
    "hotset.cachelayer.machine.EnvironmentLacksError": LACKS,
    "hotset.cachelayer.takedown.BusyError": LACKS,
    "hotset.tpcc.record.DriverMissing": LACKS,
    "hotset.harness.journal.ThresholdMissedError": MISSED,
    "hotset.cachelayer.machine.CommandError": FAILED,
    "hotset.cachelayer.machine.CommandTimeoutError": FAILED,
    "hotset.cachelayer.machine.MachineGoneError": FAILED,
    "hotset.cachelayer.tier.TierFailedError": FAILED,
    "hotset.cachelayer.tier.WarmupFailedError": FAILED,
    "hotset.cachelayer.heatstore.StoreError": FAILED,
    "hotset.harness.hammerdb.failures.HammerdbFailed": FAILED,
    "hotset.tpcc.record.RunFailed": FAILED,
    "hotset.tpcc.record.LoadFailed": FAILED,
    "hotset.tpcc.schema.SetupError": FAILED,
    "hotset.tpcc.consistency.Violated": FAILED,
    "hotset.tpcc.database.DatabaseError": FAILED,
    "hotset.tpch.record.Lacks": LACKS,
    "hotset.tpch.record.DataFailed": FAILED,
    "hotset.tpch.record.LoadFailed": FAILED,
    "hotset.tpch.record.RunFailed": FAILED,
    "hotset.tpch.schema.SetupError": FAILED,
    "hotset.tpch.database.DatabaseError": FAILED,
}
"""By the names of the failures hotset foresees, so that nothing has to be imported to tell."""


def code_of(error: Exception) -> int | None:
    """The exit code for a failure that hotset foresees; None for any other."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((CODES[name] for name in names if name in CODES), None)
