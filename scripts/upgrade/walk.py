"""From one version to the other under load, through a reboot, and back: what `docs/upgrade.md`
promises, step by step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hotset.core.waiting import wait_until

from .record import UnmetError
from .site import DATA, DISK, FILL, FLASH, MAKE, ORIGIN, RUNS, SNAPSHOT, Site
from .versions import Version, install

READING = (
    ("tier", "status"),
    ("tier", "watch", "1", "2"),
    ("report", "metrics"),
    ("tier", "health"),
    ("tier", "resident"),
    ("tier", "explain", f"{DATA}/hot/1"),
    ("heat", "top"),
    ("report", "hit-ratio"),
    ("warmup", "list"),
    ("warmup", "plans"),
    ("warmup", "schedule", "list"),
    ("runs", "list"),
    ("jobs", "list"),
    ("console", "token", "list"),
    ("audit",),
)
"""What only reads, and what is kept among it."""
COLD = "region:120MiB+24MiB"
"""Of the disk, where nothing was ever read: a job that takes two minutes."""
CHANGING = (
    ("tier", "set", "--policy", "lru"),
    ("tier", "set", "--mode", "writethrough"),
    ("tier", "set", "--mode", "writeback"),
    ("tier", "resize", "--cache", "96MiB"),
    ("tier", "resize", "--cache", "64MiB"),
    ("tier", "flush"),
    ("warmup", "run", f"{DATA}/hot", "--method", "online"),
    ("warmup", "restore", str(SNAPSHOT), "--method", "online"),
    ("warmup", "exclude", f"{DATA}/hot/4"),
    ("warmup", "unpin", f"{DATA}/hot/4"),
    ("warmup", "refresh"),
)
"""What changes a disk that is in use."""
_WITHOUT_SYSTEMD = (0, 3)
"""The units are written, and nobody is there to read them."""

ON_A_LATER_CARD = (
    ("tier", "activate"),
    ("tier", "resize", "--cache", "64MiB"),
    ("tier", "set", "--mode", "writethrough"),
    ("tier", "detach", DISK),
    ("tier", "destroy", DISK, "--yes"),
    ("tier", "import", "--flash", str(FLASH), "--take-over"),
    (
        *("tier", "create", "other", "--kind", "userspace", "--flash", str(FLASH)),
        *("--origin", "/srv/other", "--cache", "16MiB", "--database", "oltp", "--yes"),
    ),
)


def made_before(site: Site) -> None:
    """The version before makes all that is kept."""
    before, server = site.before, site.server
    with site.record.step("`tier create`, file system, files", "they are there"):
        server.sh(MAKE)
        words = ("--flash", str(FLASH), "--origin", str(ORIGIN), "--cache", "64MiB")
        site.hotset(
            *(before, "tier", "create", DISK, "--kind", "userspace", *words),
            *("--volume", "16MiB", "--database", "oltp", "--mode", "writeback", "--yes"),
        )
        site.hotset(before, "tier", "activate", "--unit")
        site.mount()
        server.sh(FILL)
    with site.record.step("pins, shares, a snapshot, a schedule, heat, a token, a run", "kept"):
        site.hotset(before, "warmup", "pin", f"{DATA}/pinned")
        site.hotset(before, "warmup", "share", f"{DATA}/shared", "--limit", "40%")
        site.hotset(before, "warmup", "run", f"{DATA}/hot", "--method", "online")
        site.hotset(before, "warmup", "snapshot", "--output", str(SNAPSHOT))
        site.hotset(
            *(before, "warmup", "schedule", "add", f"{DATA}/hot", "--at", "Mon..Fri 07:00"),
            *("--program", str(before.hotset), "--no-enable"),
            codes=_WITHOUT_SYSTEMD,
        )
        site.hotset(before, "heat", "top")
        made = site.hotset(before, "console", "token", "create", "walk", "--right", "operate")
        site.token = made.stdout.split()[-1]
        server.sh("printf 'a-password-of-a-walk\\n' > /root/password; chmod 600 /root/password")
        keep_run(site, before)


def keep_run(site: Site, version: Version) -> None:
    """Put a run that a version has published into the archive: experiments take too long here."""
    published = version.source / "reports/published"
    newest = max(published.glob("*/result.json"), key=lambda one: one.parent.name)
    folder = site.server.path(RUNS) / json.loads(newest.read_text())["run"]
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(newest, folder / "result.json")


def with_an_engine_of_the_other(site: Site, ours: Version, other: Version) -> None:
    """``ours`` works on an engine that ``other`` started, under load."""
    record = site.record
    pid, _ = site.engine()
    speaks = ours.protocol >= other.protocol
    or_error = "" if speaks else ", or an error that says so; nothing breaks"
    for reading in READING:
        with record.step(f"`{' '.join(reading)}`", f"answers{or_error}"):
            site.attempt(ours, reading, speaks)
    for words in CHANGING:
        with record.step(f"`{' '.join(words)}`", f"done, by the engine that runs{or_error}"):
            site.attempt(ours, words, speaks)
            if site.engine()[0] != pid:
                raise UnmetError(f"another engine runs, or {other.name}'s was started again")
    if speaks:
        with record.step(f"`tier status` of *{ours.name}*", "active, with the engine's counters"):
            site.state(ours)


def kept_by_the_other(site: Site, ours: Version, other: Version) -> None:
    """``ours`` reads what ``other`` has kept."""
    record = site.record
    with record.step("pins and shares", "as they were set"):
        found = json.dumps(site.asked(ours, "warmup", "list"))
        for one in ("pinned", "shared"):
            if f"{DATA}/{one}" not in found:
                raise UnmetError(found[:300])
    with record.step("the schedule", "listed, with the program that it was made with"):
        found = json.dumps(site.asked(ours, "warmup", "schedule", "list"))
        if str(site.before.hotset) not in found:
            raise UnmetError(found[:300])
    with record.step("the token", "listed"):
        if "walk" not in site.hotset(ours, "console", "token", "list").stdout:
            raise UnmetError("it is not")
    with record.step("`runs list`, `runs show`", "read, or refused in one line"):
        site.hotset(ours, "runs", "list")
        for run in sorted(path.name for path in site.server.path(RUNS).iterdir()):
            done = site.hotset(ours, "runs", "show", run, codes=(0, 2))
            said = "read" if done.rc == 0 else done.stderr.strip()[:160]
            record.note(f"{run}: {said}")
            if done.rc and ours is site.this:
                raise UnmetError(f"a run of *{other.name}*")


def jobs_of_the_other(site: Site, ours: Version, other: Version) -> None:
    """A job of ``other`` goes on while ``ours`` looks, and has the disk."""
    record = site.record
    with site.console(other):
        with record.step(f"a job of *{other.name}*'s console", "started"):
            body = {"targets": [COLD], "method": "online", "rate": "200KB/s"}
            status, said = site.api(other, "/warmup/run", body)
            if status != 202:
                raise UnmetError(f"{status}: {said}")
            job = str(said["id"])
        with record.step(f"`jobs list`, `jobs show` of *{ours.name}*", "it runs"):
            site.require_job(ours, job, "running")
        with record.step("`tier deactivate` meanwhile", "refused: the disk is at work for the job"):
            done = site.hotset(ours, "tier", "deactivate", DISK, codes=(0, 2, 3))
            if done.rc == 0:
                raise UnmetError("it was taken down under the job")
            record.note(done.stderr.strip()[:120])
        with site.console(ours), record.step("both consoles side by side", "each lists the job"):
            for one in (ours, other):
                status, said = site.api(one, f"/jobs/{job}")
                if status != 200 or said["state"] != "running":
                    raise UnmetError(f"{one.name}: {status} {json.dumps(said)[:200]}")
        with record.step(f"`jobs cancel` of *{ours.name}*", "the job ends as interrupted"):
            site.hotset(ours, "jobs", "cancel", job)
            wait_until(lambda: site.job_state(ours, job) != "running", 60, 0.5)
            site.require_job(ours, job, "interrupted")


def handed_over(site: Site, ours: Version, other: Version) -> None:
    """The disk is taken down, and ``ours`` takes it up: its own engine serves it then."""
    record = site.record
    # By whoever knows what the engine answers.
    by = ours if ours.protocol >= other.protocol else other
    what = f"`tier deactivate` of *{by.name}*, `tier activate` of *{ours.name}*, mount"
    with record.step(what, f"*{ours.name}*'s engine runs"):
        site.unmount()
        site.hotset(by, "tier", "deactivate", DISK)
        site.hotset(ours, "tier", "activate", "--unit")
        site.mount()
        program = site.engine()[1]
        record.note(program)
    with record.step("every byte", "as written"):
        record.note(site.check_bytes())
    with record.step("`tier status`", "active"):
        site.state(ours)


def rebooted(site: Site, ours: Version) -> None:
    """Down and up by the disk's unit, as systemd does it."""
    with site.record.step("reboot in good order, by the unit", "the disk comes up"):
        site.reboot()
        site.state(ours)
    with site.record.step("every byte", "as written"):
        site.record.note(site.check_bytes())


def without_the_other(site: Site, other: Version) -> None:
    """Nothing of what has been handed over is needed any more."""
    with site.record.step("the old package removed, and a reboot", "the disk comes up as before"):
        shutil.rmtree(site.server.path(other.prefix))
        site.reboot()
        site.record.note(site.check_bytes())
    install(other, site.server.root, site.PYTHON)


def interrupted(site: Site, old: Version, new: Version) -> None:
    """Half of the new version's files lie over the old one's."""
    record, root = site.record, site.server.root
    with site.writing():
        with record.step("half of the new package's files over the old one's", "the disk goes on"):
            half_installed(root, old, new)
            done = site.server.run([str(old.hotset), "tier", "status"], check=False)
            record.note(f"its command line ends with code {done.rc}")
        with record.step("the package installed again", "the command line works"):
            install(
                Version(old.name, new.commit, new.source, new.wheel, new.programs),
                root,
                site.PYTHON,
            )
            site.state(old)
    with record.step("every byte", "as written"):
        record.note(site.check_bytes())
    with record.step("`tier activate` killed after 0.3, 0.6, 0.9 s", "the next one finishes it"):
        site.unmount()
        for seconds in ("0.3", "0.6", "0.9"):
            site.hotset(new, "tier", "deactivate", DISK)
            argv = ["timeout", "--signal=KILL", seconds, str(new.hotset), "tier", "activate"]
            ended = site.server.run(argv, check=False)
            record.note(f"after {seconds} s: code {ended.rc}")
            site.hotset(new, "tier", "activate")
        site.mount()
        record.note(site.check_bytes())


def half_installed(root: Path, old: Version, new: Version) -> None:
    """As an interrupted unpacking leaves it: every other file is the new one's."""
    of_old, of_new = (root / one.prefix.relative_to("/") / "lib/hotset" for one in (old, new))
    for number, file in enumerate(sorted(of_new.rglob("*.py"))):
        if number % 2 == 0:
            target = of_old / file.relative_to(of_new)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)


def later_card(site: Site, ours: Version) -> None:
    """A card of a later version than any: whoever does not know it leaves it alone."""
    record = site.record
    with record.step(
        "a label of a later version: every command", "refused, and the label stays as it is"
    ):
        site.unmount()
        site.hotset(ours, "tier", "deactivate", DISK)
        with site.later_label():
            label = site.label()
            for words in ON_A_LATER_CARD:
                done = site.hotset(ours, *words, codes=(2, 3, 4))
                record.note(f"{words[1]}: {' '.join(done.stderr.split())[:110]}")
            boot = site.unit("ExecStart")
            if boot.rc == 0 or "version" not in boot.stderr:
                raise UnmetError(f"the unit: {boot.rc} {boot.stderr.strip()[:200]}")
            if site.label() != label:
                raise UnmetError("the label was changed")
    with record.step("with its own label again", "the disk comes up, every byte as written"):
        site.hotset(ours, "tier", "activate")
        site.mount()
        record.note(site.check_bytes())


def given_back(site: Site, ours: Version) -> None:
    """The disk is a plain one again."""
    with site.record.step("`tier detach`", "the origin alone has every byte"):
        site.unmount()
        site.hotset(ours, "tier", "detach", DISK)
        site.server.sh(f"mount -o loop {ORIGIN} {DATA}")
        site.record.note(site.check_bytes())
        site.unmount()


def run(site: Site) -> None:
    """All of it."""
    before, this = site.before, site.this
    part = site.record.in_part
    with part("made by the version before"):
        made_before(site)
    with part("upgrade under load"):
        with site.writing():
            with_an_engine_of_the_other(site, this, before)
        kept_by_the_other(site, this, before)
        jobs_of_the_other(site, this, before)
    with part("hand-over and reboot"):
        handed_over(site, this, before)
        rebooted(site, this)
        without_the_other(site, before)
    with part("downgrade under load"):
        keep_run(site, this)
        with site.writing():
            with_an_engine_of_the_other(site, before, this)
        kept_by_the_other(site, before, this)
        jobs_of_the_other(site, before, this)
    with part("downgraded"):
        handed_over(site, before, this)
        rebooted(site, before)
    with part("upgraded again"):
        handed_over(site, this, before)
    with part("an upgrade interrupted half-way"):
        interrupted(site, before, this)
    with part("a card of a later version"):
        later_card(site, this)
    with part("given back"):
        given_back(site, this)
