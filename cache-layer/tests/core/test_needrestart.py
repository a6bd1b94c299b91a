"""needrestart's own language reads the file, and leaves hotset's services alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hotset.core.machines import needrestart
from hotset.core.machines.local import Local
from tests.fake_machine import FakeMachine

# As needrestart reads its files and goes through what it found (perl/needrestart of its sources).
READ = """
our %nrconf = (override_rc => { qr(^dbus) => 0 });
eval do { local(@ARGV, $/) = $ARGV[0]; <> };
die $@ if $@;
for my $service (@ARGV[1 .. $#ARGV]) {
    my $restart = 1;
    for my $re (keys %{$nrconf{override_rc}}) {
        $restart = $nrconf{override_rc}->{$re} if $service =~ /$re/;
    }
    print "$service $restart\n";
}
"""


def test_perl_reads_it_and_hotsets_services_are_not_restarted(tmp_path: Path) -> None:
    conf = tmp_path / "hotset.conf"
    conf.write_text(needrestart.TEXT)
    names = {
        "hotset-engine-shop.service": "0",
        "hotset-tier-shop.service": "0",
        "dbus.service": "0",
        "postgresql@17-main.service": "1",
        "my-hotset-engine-x.service": "1",
    }
    argv = ["perl", "-w", "-e", f"use strict; {READ}", str(conf), *names]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert dict(line.split() for line in done.stdout.splitlines()) == names


def test_somebody_elses_file_stays() -> None:
    there, path = FakeMachine(), str(needrestart.CONF)
    needrestart.install(there)
    assert there.files[path] == (needrestart.TEXT, 0o644)
    there.files[path] = (needrestart.TEXT.replace("(engine|tier)", "engine"), 0o644)
    needrestart.install(there)
    assert there.files[path][0] == needrestart.TEXT, "of an earlier version of hotset"
    there.files[path] = ("# ours\n", 0o600)
    needrestart.install(there)
    assert there.files[path] == ("# ours\n", 0o600)


@pytest.mark.parametrize(("text", "stays"), [(needrestart.TEXT, False), ("# ours\n", True)])
def test_only_what_hotset_wrote_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, stays: bool
) -> None:
    conf = tmp_path / "needrestart/conf.d/hotset.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(text)
    monkeypatch.setattr(needrestart, "CONF", conf)
    units = tmp_path / "units"
    units.mkdir()
    script = needrestart._REMOVE.replace("/etc/systemd/system", str(units))
    monkeypatch.setattr(needrestart, "_REMOVE", script)
    unit = units / "hotset-engine-other.service"
    unit.touch()
    needrestart.remove(Local())
    assert conf.exists(), "another engine needs it"
    unit.unlink()
    needrestart.remove(Local())
    assert conf.exists() is stays
    assert conf.parent.parent.exists() is stays
    needrestart.remove(Local())
