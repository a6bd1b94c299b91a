"""Sizes as types: reading, writing, and the conversions that must be refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from hotset.core.units import Blocks, Bytes, Sectors, mb_per_s, parse_span

FACTORS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
SIZES = st.integers(0, 2**50)


@given(st.integers(0, 8000), st.sampled_from(sorted(FACTORS)), st.sampled_from(["", " ", "  "]))
def test_whole_numbers_with_every_unit(number: int, unit: str, gap: str) -> None:
    for text in (f"{number}{gap}{unit}", f" {number}{gap}{unit.lower()} ", f"{number}{unit}"):
        assert Bytes.parse(text) == number * FACTORS[unit]


@given(SIZES)
def test_a_plain_number_is_bytes(size: int) -> None:
    assert Bytes.parse(size) == size
    assert Bytes.parse(str(size)) == size
    assert type(Bytes.parse(str(size))) is Bytes


@given(SIZES)
def test_what_is_printed_reads_back_within_its_rounding(size: int) -> None:
    text = str(Bytes(size))
    assert re.fullmatch(r"\d+ B|\d+(\.\d)? [KMGT]iB", text)
    again = Bytes.parse(text)
    number, name = text.split()
    unit = FACTORS[name]
    # A tenth below 100, a whole one above; without a point below it is exact.
    step = 0 if unit == 1 else 0.1 if "." in number else 1 if float(number) >= 100 else 0
    assert abs(again - size) <= step / 2 * unit + (step > 0)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (65536, "64 KiB"),
        (2**40, "1 TiB"),
        (1610612736, "1.5 GiB"),
        (2**51, "2048 TiB"),
    ],
)
def test_printed(size: int, text: str) -> None:
    assert str(Bytes(size)) == text


@pytest.mark.parametrize("text", ["1.5GiB", "1.5 gib", " 1536MiB "])
def test_fractions_of_a_unit(text: str) -> None:
    assert Bytes.parse(text) == 1536 * 2**20


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "-64KiB",
        "KiB",
        "64 kbit",
        "1e6",
        "inf",
        "nan",
        "64PiB",
        "1.5.2",
        "64 KiB/s",
        "1,5 GiB",
        "0x10",
        "1_000",
        "٣ MiB GiB",
        ".5 GiB",
    ],
)
def test_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size") as refused:
        Bytes.parse(text)
    assert repr(text) in str(refused.value)
    assert "KiB" in str(refused.value)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 is negative"):
        Bytes.parse(-1)


@given(SIZES)
def test_sectors(size: int) -> None:
    sectors = Sectors(size)
    assert sectors.bytes == size * 512
    assert type(sectors.bytes) is Bytes
    assert sectors.bytes.sectors == sectors
    assert type(sectors.bytes.sectors) is Sectors


@given(SIZES.filter(lambda size: size % 512))
def test_part_of_a_sector_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"^{size} bytes is not a whole number of 512 B sectors"):
        _ = Bytes(size).sectors


@given(SIZES, st.integers(1, 2**30))
def test_blocks_are_rounded_down(size: int, block: int) -> None:
    blocks = Bytes(size).blocks(Bytes(block))
    assert type(blocks) is Blocks
    assert blocks.bytes(Bytes(block)) <= size < Blocks(blocks + 1).bytes(Bytes(block))


@given(SIZES, st.integers(1, 2**30))
def test_aligning(size: int, unit: int) -> None:
    up, down = Bytes(size).align_up(unit), Bytes(size).align_down(unit)
    assert up % unit == down % unit == 0
    assert down <= size <= up
    assert up - down in (0, unit)
    assert (up == down) == (size % unit == 0)
    assert type(up) is type(down) is Bytes


def test_arithmetic_loses_the_name_of_the_unit() -> None:
    assert type(Bytes(1) + Bytes(2)) is int
    assert type(Sectors(1) + Bytes(2)) is int
    assert type(Blocks(3) * 2) is int


def test_repr_names_the_unit() -> None:
    assert [repr(kind(8)) for kind in (Bytes, Sectors, Blocks)] == [
        "Bytes(8)",
        "Sectors(8)",
        "Blocks(8)",
    ]


class _Record(BaseModel):
    size: Bytes


def test_in_a_record() -> None:
    record = _Record.model_validate({"size": "64KiB"})
    assert type(record.size) is Bytes
    assert record.model_dump() == {"size": 65536}
    assert _Record.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("value", ["64 bananas", -1, 1.5, 2e9, True, None, [], {"GiB": 1}])
def test_no_size_in_a_record(value: object) -> None:
    with pytest.raises(ValidationError):
        _Record.model_validate({"size": value})


def test_rate() -> None:
    assert mb_per_s(Bytes(50_000_000), 2.0) == 25.0
    assert mb_per_s(Bytes(50_000_000), 0.0) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30min", 1800), ("30m", 1800), ("2h", 7200), ("1.5 h", 5400), ("7d", 604_800)],
)
def test_a_span(text: str, seconds: float) -> None:
    """`--since` took min and no m, `--until-steady` m and no min."""
    assert parse_span(text) == seconds
