"""The experiment file: what is taken, and one clear text for everything that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core.paths import repository_file
from hotset.core.units import Bytes
from hotset.experiment.file.spec import Spec, SpecError, read, read_any
from hotset.reports.model import document
from hotset.tier import policies

MIB = 2**20
GOOD = """\
name = "small"

[storage]
size = "1GiB"

[flash]
size = "2GiB"

[tier]
cache = "256MiB"
volume = "128MiB"

[tpcc]
warehouses = 2
users = 4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(GOOD)
    return path


def refused(file: Path, *overrides: str, text: str | None = None) -> str:
    """The one text of the error."""
    if text is not None:
        file.write_text(text)
    with pytest.raises(SpecError) as error:
        read(file, overrides)
    message = str(error.value)
    assert message.strip()
    assert "Traceback" not in message
    assert "validation error" not in message
    assert "pydantic" not in message
    return message


@pytest.mark.parametrize(
    ("given", "kept", "most"), [("4", 4, 4), ("[4]", 4, 4), ("[1, 2, 8]", [1, 2, 8], 8)]
)
def test_users_are_a_number_or_several(given: str, kept: object, most: int) -> None:
    found = read(repository_file("experiments/demo.toml"), (f"tpcc.users={given}",))
    assert found.model_dump(mode="json")["tpcc"]["users"] == kept
    assert found.tpcc.most_users == most


@pytest.mark.parametrize("given", ["[]", "[2, 1]", "[1, 1]", "[0, 1]", "true", "1.5", "20_000"])
def test_users_that_do_not_rise_are_refused(given: str) -> None:
    with pytest.raises(
        SpecError, match=r"tpcc.users = .*several that rise, such as \[1, 2, 4, 8\]"
    ):
        read(repository_file("experiments/demo.toml"), (f"tpcc.users={given}",))


def test_the_shipped_demonstration_is_valid() -> None:
    spec = read(repository_file("experiments/demo.toml"))
    assert spec.name == "demo"
    assert spec.arms == ("baseline", "accelerated", "all-flash")
    assert spec.storage.size == 1664 * MIB
    assert spec.tier.block == 64 * 1024
    tier = spec.tier.resolve()
    assert tier.metadata + tier.cache + tier.volume <= spec.flash.size


def test_bcache_has_its_own_unit_and_policy(file: Path) -> None:
    spec = read(file, ("tier.kind=bcache",))
    tier = spec.tier.resolve()
    assert spec.tier.wanted == "bcache"
    assert (tier.block, tier.policy, tier.bypass) == (4096, "lru", 0)
    assert tier.cache % 2**20 == 0
    with pytest.raises(SpecError, match="bcache has only 'lru'"):
        read(file, ("tier.policy=sieve", "tier.kind=bcache"))
    with pytest.raises(SpecError, match=r"bcache needs at least 64 MiB"):
        read(file, ("tier.cache=32MiB", "tier.kind=bcache"))


def test_a_policy_that_dm_cache_lacks_needs_hotsets_own_engine(file: Path) -> None:
    assert read(file).tier.wanted == "auto"
    assert read(file, ("tier.policy=sieve",)).tier.wanted == "userspace"
    with pytest.raises(SpecError, match=r"tier.*sieve.*dm-cache has only 'smq'"):
        read(file, ("tier.policy=sieve", "tier.kind=dm-cache"))


def test_the_engine_of_our_own_has_hotset_unless_told_otherwise(file: Path) -> None:
    unsaid = read(file).tier
    assert unsaid.resolve("userspace").policy == "hotset"
    assert unsaid.resolve("dm-cache").policy == "smq"
    assert read(file, ("tier.kind=userspace",)).tier.resolve().policy == "hotset"
    said = read(file, ("tier.kind=userspace", "tier.policy=smq")).tier
    assert said.resolve("userspace").policy == "smq"


def test_policies_as_arms_are_those_of_the_own_engine(file: Path) -> None:
    assert document.POLICY_ARMS == policies.POLICIES
    spec = read(file, ('arms=["baseline", "smq", "arc"]',))
    assert (spec.tier_wanted, spec.policy_arms) == ("userspace", ["smq", "arc"])
    assert read(file).tier_wanted == "auto"
    with pytest.raises(SpecError, match=r"arms: smq: .*set tier.kind to 'userspace'"):
        read(file, ('arms=["baseline", "smq"]', "tier.kind=dm-cache"))


def test_a_block_is_as_large_as_the_tier_that_takes_it_allows(file: Path) -> None:
    for chosen in ("tier.policy=hotset", "tier.kind=userspace"):
        assert read(file, (chosen, "tier.block=16KiB")).tier.block == 16 * 1024
        with pytest.raises(SpecError, match="power of two"):
            read(file, (chosen, "tier.block=96KiB"))
    with pytest.raises(SpecError, match="multiple of 32 KiB"):
        read(file, ("tier.block=16KiB",))
    assert read(file, ("tier.block=96KiB",)).tier.block == 96 * 1024


@pytest.mark.parametrize("path", sorted(repository_file("experiments").glob("*.toml")), ids=str)
def test_every_shipped_experiment_is_valid(path: Path) -> None:
    assert read_any(path).name == path.stem


def test_defaults_are_filled_in(file: Path) -> None:
    spec = read(file)
    assert spec.repeats == 2
    assert spec.tier.mode == "writeback"
    assert spec.tier.metadata == "auto"
    assert spec.warmup.method == "fill"
    assert spec.tpcc.think_time is False


def test_the_resolved_spec_reads_back(file: Path) -> None:
    spec = read(file)
    assert Spec.model_validate(spec.model_dump(mode="json")) == spec
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def test_sizes_are_made_whole_blocks(file: Path) -> None:
    tier = read(file, ("tier.cache=268435457", "tier.volume=134217729")).tier.resolve()
    assert tier.cache == 256 * MIB
    assert tier.volume == 128 * MIB
    assert tier.metadata == 5 * MIB
    assert read(file, ("tier.metadata=8MiB",)).tier.resolve().metadata == Bytes(8 * MIB)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('colour = "red"\n' + GOOD, "unknown key colour"),
        (GOOD + "user = 4\n", "unknown key tpcc.user"),
        (GOOD.replace("cache =", "cach = 1\ncache ="), "unknown key tier.cach"),
        (GOOD + "\n[tear]\nx = 1\n", "unknown key tear"),
        (GOOD + "\n[prices]\nserver = 1\nflash = 2\n", "unknown key prices.flash"),
        (GOOD + "\n[prices]\norigin = 2\n", "prices.server is missing"),
        (GOOD + "\n[warmup.more]\nx = 1\n", "unknown key warmup.more"),
    ],
)
def test_an_unknown_key_is_named_with_its_path(file: Path, line: str, key: str) -> None:
    message = refused(file, text=line)
    assert message == f"{file}: {key}"


def test_a_missing_key_is_named_with_its_path(file: Path) -> None:
    assert refused(file, text=GOOD.replace("users = 4\n", "")) == f"{file}: tpcc.users is missing"
    assert refused(file, text='name = "x"\n').splitlines() == [
        f"{file}: {table} is missing" for table in ("storage", "flash", "tier")
    ]


def test_all_faults_are_told_at_once(file: Path) -> None:
    lines = refused(file, "tpcc.users=0", "tier.block=65537", "shape=1").splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{file}: ") for line in lines)
    told = " ".join(lines)
    assert all(key in told for key in ("tpcc.users = 0", "tier.block = 65537", "unknown key shape"))


@pytest.mark.parametrize("block", ["65537", "'16KiB'", "'2GiB'", "'48KiB'", "0"])
def test_a_block_size_the_kernel_does_not_take(file: Path, block: str) -> None:
    message = refused(file, f"tier.block={block}")
    assert f"{file}: tier" in message
    assert "block = " in message
    assert "multiple of 32 KiB" in message


def test_more_than_the_flash(file: Path) -> None:
    message = refused(file, "tier.cache=2GiB")
    assert "cache 2 GiB" in message
    assert "larger than flash.size = 2 GiB" in message
    assert "\n" not in message


REAL = ("machine.kind=local", "storage.device=/dev/disk/by-id/ata-HDD_1")


def test_real_disks_are_named_by_their_keys(file: Path) -> None:
    more = ("flash.device=/dev/disk/by-id/nvme-F", "storage.log_device=/dev/disk/by-id/ata-HDD_2")
    assert read(file, (*REAL, *more)).devices == {
        "storage.device": "/dev/disk/by-id/ata-HDD_1",
        "storage.log_device": "/dev/disk/by-id/ata-HDD_2",
        "flash.device": "/dev/disk/by-id/nvme-F",
    }
    assert read(file).devices == {}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("storage.device=sdb",), ("storage.device", "sdb: name a device", "/dev/disk/by-id/")),
        (
            ("machine.kind=uml",),
            ("storage.device = /dev/disk/by-id/ata-HDD_1", "machine.kind = 'local', not 'uml'"),
        ),
        (("flash.device=/dev/disk/by-id/ata-HDD_1",), ("ata-HDD_1: this device is named twice",)),
        (("arms=['split-disks']",), ("name them in storage.split_devices",)),
    ],
)
def test_real_disks_that_cannot_be(
    file: Path, overrides: tuple[str, ...], words: tuple[str, ...]
) -> None:
    message = refused(file, *REAL, *overrides)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_volume_too_small_for_the_log(file: Path) -> None:
    message = refused(file, "tier.volume=100MiB")
    assert "volume = 100 MiB: log and temporary space need at least 128 MiB" in message


def test_the_flash_may_be_used_up_to_the_last_block(file: Path) -> None:
    metadata = read(file).tier.resolve().metadata
    exact = f"flash.size={256 * MIB + 128 * MIB + metadata}"
    arms = "arms=['baseline', 'accelerated']"
    assert read(file, (exact, arms)).flash.size == 256 * MIB + 128 * MIB + metadata
    less = f"flash.size={256 * MIB + 128 * MIB + metadata - 1}"
    assert "larger than flash.size" in refused(file, less, arms)


def test_the_published_test_keeps_its_proportions_at_any_scale() -> None:
    file = repository_file("experiments/zdxl-2014.toml")
    small, full = read(file), read(file, ("scale=1",))
    assert full.tier.cache == 595 * 10**9
    assert full.tpcc.warehouses == 4760
    for at in (small, read(file, ("scale=0.01",))):
        assert at.tier.cache == round(full.tier.cache * at.scale)
        volume = round(full.tier.volume * at.scale)
        assert at.tier.volume == max(volume, 512 * MIB), "a log does not shrink with its tables"
        assert at.flash.size == round(full.flash.size * at.scale) + at.tier.volume - volume
        assert at.storage.size == round(full.storage.size * at.scale)
        assert at.tpcc.warehouses == round(full.tpcc.warehouses * at.scale)
        assert at.tpch is not None
        assert at.tpch.scale == pytest.approx(450 * at.scale)
        assert (at.tpcc.most_users, at.tpcc.duration_s) == (100, 900)
        assert at.placements == (("tpcc",), ("tpch",))


def test_a_scale_leaves_wrong_values_to_the_message_about_them(file: Path) -> None:
    assert "tier.cache = 'much'" in refused(file, "scale=0.5", "tier.cache=much")
    assert "scale = -1" in refused(file, "scale=-1")


def test_workloads_share_a_placement_where_the_cache_holds_them_all(file: Path) -> None:
    assert read(file).placements == (("tpcc",),)
    small = ("tpcc.warehouses=1", "tpch.scale=0.05")
    assert read(file, small).placements == (("tpcc", "tpch"),)
    cut = (*small, "tier.cache=64MiB")
    assert read(file, cut).placements == (("tpcc",), ("tpch",))


def test_a_scale_that_makes_no_whole_rows(file: Path) -> None:
    assert "tpch.scale" in refused(file, "tpch.scale=0.00001")


def test_both_databases_count(file: Path) -> None:
    message = refused(file, "tpcc.warehouses=1", "tpch.scale=1")
    assert "tpcc.warehouses = 1, tpch.scale = 1: the databases take about 1.7 GiB" in message


def test_memory_for_the_whole_database(file: Path) -> None:
    arms = 'arms=["in-memory"]'
    message = refused(file, arms, "machine.kind=uml", "machine.memory=256MiB")
    assert "in-memory takes buffers of" in message


def test_a_database_larger_than_the_origin(file: Path) -> None:
    message = refused(file, "tpcc.warehouses=9")
    assert "tpcc.warehouses = 9: the databases take about 901 MiB" in message
    assert "but storage.size = 1 GiB" in message
    assert read(file, ("tpcc.warehouses=4",)).tpcc.warehouses == 4


def test_an_all_flash_arm_that_does_not_fit(file: Path) -> None:
    message = refused(file, "flash.size=1GiB")
    assert "all-flash holds the whole slow disk" in message
    assert "flash.size = 1 GiB" in message
    assert read(file, ("flash.size=1GiB", "arms=['baseline']")).arms == ("baseline",)


@pytest.mark.parametrize("arms", ["[]", "['baseline', 'baseline']"])
def test_each_arm_once(file: Path, arms: str) -> None:
    assert "name each arm once" in refused(file, f"arms={arms}")


def test_an_unknown_arm(file: Path) -> None:
    message = refused(file, "arms=['baseline', 'magic']")
    assert f"{file}: arms.1 = 'magic'" in message
    assert "'accelerated'" in message


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("repeats=0", "repeats = 0"),
        ("repeats=two", "repeats = 'two'"),
        ("name=Big Name", "name = 'Big Name'"),
        ("name=../x", "name = '../x'"),
        ("time_scale=1", "unknown key time_scale"),
        ("tpcc.duration_s=0", "tpcc.duration_s = 0"),
        ("tpcc.rampup_s=-1", "tpcc.rampup_s = -1"),
        ("tier.mode=writearound", "tier.mode = 'writearound'"),
        ("tier.policy=mq", "tier.policy = 'mq'"),
        ("tier.kind=zfs", "tier.kind = 'zfs'"),
        ("tier.cache=many", "tier.cache = 'many'"),
        ("tier.cache=-5", "tier.cache = -5"),
        ("tier.cache=1.5", "tier.cache = 1.5"),
        ("tier.metadata=some", "tier.metadata = 'some'"),
        ("storage.size=[1]", "storage.size = [1]"),
        ("machine.kind=cloud", "machine.kind = 'cloud'"),
        ("machine.kind=vm", "machine.kind = 'vm': an experiment does not run in a virtual machine"),
        ("database.engine=oracle", "database.engine = 'oracle'"),
        ("database.buffers_fraction=0", "database.buffers_fraction = 0"),
        ("database.buffers_fraction=1.5", "database.buffers_fraction = 1.5"),
        ("warmup.probe_hit_ratio=2", "warmup.probe_hit_ratio = 2"),
        ("warmup.method=hope", "warmup.method = 'hope'"),
    ],
)
def test_a_bad_value_is_named_with_its_key(file: Path, override: str, key: str) -> None:
    message = refused(file, override)
    assert f"{file}: {key}" in message


def test_overrides_replace_values_of_every_kind(file: Path) -> None:
    spec = read(
        file,
        (
            "tpcc.users=32",
            "tpcc.think_time=true",
            "tier.block=128KiB",
            'title="a = b"',
            "warmup.probe_hit_ratio = 0.5",
            "machine.kind = uml ",
            "arms=['baseline', 'accelerated']",
            'storage.model={ kind = "hdd" }',
            "tpcc.users=33",
        ),
    )
    assert spec.tpcc.most_users == 33
    assert spec.tpcc.think_time is True
    assert spec.tier.block == 128 * 1024
    assert spec.title == "a = b"
    assert spec.warmup.probe_hit_ratio == 0.5
    assert spec.machine.kind == "uml"
    assert spec.arms == ("baseline", "accelerated")
    assert spec.storage.model == {"kind": "hdd"}


def test_an_override_may_make_a_table(file: Path) -> None:
    assert read(file, ("database.buffers_fraction=0.2",)).database.buffers_fraction == 0.2


def test_an_override_without_a_value(file: Path) -> None:
    assert "tpcc.users: write it as key=value" in refused(file, "tpcc.users")


def test_an_override_below_a_value(file: Path) -> None:
    assert "name.x=1: name is a value, not a table" in refused(file, "name.x=1")


@pytest.mark.parametrize(
    ("override", "said"), [("tpcc.user=3", "unknown key tpcc.user"), ("=3", "unknown key")]
)
def test_an_override_of_no_key(file: Path, override: str, said: str) -> None:
    assert said in refused(file, override)


def test_no_such_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing.toml") == f"{tmp_path}/missing.toml: no such experiment file"
    assert refused(tmp_path) == f"{tmp_path}: no such experiment file"


def test_not_toml(file: Path) -> None:
    message = refused(file, text="name = \n[")
    assert message.startswith(f"{file}: not a TOML file: ")
    file.write_bytes(b"name = '\xff\xfe'")
    assert refused(file).startswith(f"{file}: not a TOML file: ")


def test_a_file_that_cannot_be_read(file: Path) -> None:
    loop = file.with_name("loop.toml")
    loop.symlink_to(loop)
    assert refused(loop).startswith(f"{loop}: cannot be read: ")
