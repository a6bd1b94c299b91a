"""The figures that a verb's result is asked for first; all others stand in the result itself."""

from __future__ import annotations

from typing import Any

from hotset.harness.service.verbs import Words
from hotset.reports.words import part_of_all

HAVE_FIGURES: frozenset[Words] = frozenset(
    {("tpcc", "run"), ("tpch", "run"), ("warmup", "run"), ("warmup", "restore")}
)


def figures(result: Any) -> dict[str, str]:  # noqa: ANN401 - what a verb prints
    """By their names, in words; empty of a result that has none.

    >>> figures({"power": {"total_s": 12.34}})
    {'22 queries': '12.3 s'}
    """
    if not isinstance(result, dict):
        return {}
    found: dict[str, str] = {}
    run = result.get("result")
    if isinstance(run, dict) and "nopm" in run:
        found |= {
            "NOPM": f"{run['nopm']:,.0f}",
            "TPM": f"{run['tpm']:,.0f}",
            "p95": f"{run['latency_ms']['p95']:.1f} ms",
            "failed": f"{run['failed']:,}",
        }
    power = result.get("power")
    if isinstance(power, dict) and power.get("total_s") is not None:
        found["22 queries"] = f"{power['total_s']:.1f} s"
    if "cached_share" in result:
        found |= {
            "cached": part_of_all(result["cached_share"]),
            "fetched at": f"{result['mb_per_s']:.0f} MB/s",
        }
    return found
