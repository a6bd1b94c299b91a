"""One experiment from its file to its record; ``run`` is the table of contents."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from hotset.bench.kept.found import memory_bytes
from hotset.bench.thresholds import Threshold
from hotset.block import flashdev
from hotset.block.devices import Confirm
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.lab import lab as labs
from hotset.lab.backend import ModelledBackend
from hotset.lab.lab import Lab, LabSpec
from hotset.reports.archive import Archive
from hotset.reports.model import setup
from hotset.reports.model.document import RunDocument

from . import sequence, timed
from .file.spec import Spec, SpecError
from .journal import Journal
from .recorded import Recorded
from .site import base_image, real_disks
from .site.context import SavedImage, Site, slow_disk


def run(
    spec: Spec,
    archive: Archive,
    report: Reporter,
    resume: str | None = None,
    yes: bool = False,
    command: Sequence[str] = (),
    limits: Sequence[Threshold] = (),
    confirm: Confirm | None = None,
) -> RunDocument:
    """Run an experiment and return its document.

    :param resume: id of a failed or interrupted run to go on with.
    :param yes: give up what lies on the real disks that the experiment names.
    :param command: the command line, to be kept with a new run.
    :param limits: the thresholds of the run; the verdicts are in the document.
    :param confirm: asked before a real disk is overwritten that something lies on.
    :raises DeviceRefusedError: one of those may not be written over.
    :raises ThresholdMissedError: the probe's hit ratio stayed below the asked one.
    """
    if (users := timed.find_timed(spec)) is not None:
        users.require()
    real_disks.take(Local(), spec, yes, report.say, confirm)
    if resume:
        journal = Journal.resume(archive, spec, resume)
    else:
        journal = Journal.begin(archive, spec, command)
    report.say(f"run {journal.document.run}")
    try:
        with ExitStack() as stack:
            with journal.phase("lab"):
                lab, image_path = _raise(stack, spec, report)
                journal.change(machine=_machine(lab))
            with journal.phase("database"):
                site = _site(lab, spec, image_path, report)
                _describe(site, journal)
            sequence.walk(site, Recorded(journal))
        journal.finish(spec.arms, limits)
    finally:
        journal.write_report()
    return journal.document


def _raise(stack: ExitStack, spec: Spec, report: Reporter) -> tuple[Lab, Path]:
    """The lab, with the disk of the saved image (a new, empty one when there is none yet)."""
    image_path = base_image.path_for(spec, labs.choose(spec.machine.kind, spec.tier_wanted))
    is_saved = base_image.find_saved(image_path) is not None
    disk = image_path if is_saved else base_image.new_file(image_path, spec.storage.size)
    wanted = LabSpec(
        machine=spec.machine.kind,
        cores=1,
        memory=spec.machine.memory,
        flash=spec.flash.size,
        saved=disk,
        saved_readonly=is_saved,
        tier=spec.tier_wanted,
        flash_model=spec.flash.model,
        flash_device=PurePosixPath(spec.flash.device) if spec.flash.device else None,
    )
    lab = stack.enter_context(labs.running(wanted, f"experiment {spec.name}", report.say))
    return lab, image_path


def _site(lab: Lab, spec: Spec, path: Path, report: Reporter) -> Site:
    password = secrets.token_urlsafe(24)
    want = spec.storage
    storage = slow_disk(lab, want.device, want.model, want.size)
    image = base_image.find_saved(path) or base_image.build(lab, spec, path, password, report)
    _require_size(spec, image)
    tier = spec.tier.resolve(lab.backend.tier_kind)
    return Site(spec, tier, lab, storage, image, password, report)


def _require_size(spec: Spec, saved: SavedImage) -> None:
    """:raises SpecError: a database of one's own is larger than the experiment was planned for."""
    if spec.sql is None:
        return
    size = saved.databases["sql"].size
    if size > spec.sql.size:
        # Rounded up: a user who sets this value must not be refused again.
        mebibytes = -(-int(size) // 1024**2)
        raise SpecError(
            f"sql.size = {spec.sql.size}: the loaded database takes {mebibytes} MiB; set the key to"
            " that or more (the load is kept)"
        )


def _describe(site: Site, journal: Journal) -> None:
    """Tier, storage and database as they are set up, into the record."""
    spec, tier, flash = site.spec, site.tier, site.lab.backend.describe_flash()
    journal.change(
        tier=setup.Tier(
            kind=site.lab.backend.tier_kind,
            mode=tier.mode,
            policy=tier.policy,
            block_bytes=int(tier.block),
            metadata_bytes=int(tier.metadata),
            cache_bytes=int(tier.cache),
            volume_bytes=int(tier.volume),
            emulated=isinstance(site.lab.backend, ModelledBackend),
            flash=flash.text,
            flash_model_read_us=flash.model_read_us,
        ),
        storage=_storage(site),
        database=_database(site, spec),
    )


def _storage(site: Site) -> setup.Storage:
    want = site.spec.storage
    if want.device is not None:
        return setup.Storage(
            kind="device",
            name=want.device,
            description=site.storage.description,
            size_bytes=int(want.size),
        )
    promise = flashdev.read_promise(Local(), want.model, ["--size", str(int(want.size))])
    depths = {point["queue_depth"]: point for point in promise["random_read_8k"]}
    return setup.Storage(
        kind="modelled",
        name=promise["model"],
        description=(
            f"{site.storage.description}; 8 KiB random reads"
            f" {depths[1]['iops']:.0f} IOPS at queue depth 1, {depths[32]['iops']:.0f} at 32"
        ),
        size_bytes=int(want.size),
        expected=setup.Calibration(
            seq_read_mb_per_s=promise["sequential_read_mb_per_s"],
            seq_write_mb_per_s=promise["sequential_write_mb_per_s"],
        ),
    )


def _database(site: Site, spec: Spec) -> setup.Database:
    return setup.Database(
        engine=spec.database.engine,
        version=site.saved.version,
        bytes=int(site.saved.size(site.saved.databases)),
        buffers_bytes=max(int(site.buffers(workloads)) for workloads in spec.placements),
        direct_io=True,
        warehouses=spec.tpcc.warehouses if spec.tpcc else None,
        users=spec.timed.most_users if spec.timed else None,
        checked_after=spec.tpcc.check if spec.tpcc else None,
        driver=spec.tpcc.driver if spec.tpcc else "hotset",
        tpch_scale=spec.tpch.scale if spec.tpch else None,
        tpch_bytes=int(
            site.saved.size(database for database in site.saved.databases if database == "tpch")
        ),
    )


def _machine(lab: Lab) -> setup.Machine:
    machine = lab.machine
    return setup.Machine(
        kind=lab.kind,
        cores=int(machine.run(["nproc"]).stdout),
        memory_bytes=memory_bytes(machine),
        kernel=machine.run(["uname", "-r"]).stdout.strip()
        + (f" ({lab.package})" if lab.package else ""),
        host=this_computer(),
    )


def this_computer() -> setup.Host:
    """Describe the computer that the machine runs on."""
    return setup.Host(
        cpu=_cpu_name(),
        cores=os.cpu_count() or 1,
        memory_bytes=memory_bytes(Local()),
        kernel=platform.release(),
    )


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
