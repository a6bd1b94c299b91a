"""Check of what a window did: a server that refuses everything is fast.

What succeeded alone says nothing: a role without the right to write reads at full speed, a standby
too, a counter that is full fails one order in six. Such a window is a failed run, whatever its
latencies, and meets no threshold.
"""

from collections import Counter
from collections.abc import Sequence

from hotset.reports.model.windows import DUE_LEAST, Repeat

from .record import DRAIN_S

ASKED_LEAST = 5
"""A kind that was asked so often and never got through is not there by chance."""
FAILED_SHARE = 0.02
"""Share of a kind, or of all: more failed transactions are a failed run."""
_CAUSES = 3


def shortfall(result: Repeat, ended: Sequence[str] = ()) -> str:
    """Describe what was due and not done, with the server's messages; empty if all was done.

    :param ended: kinds of which none got through any more, in words.
    """
    faults = [*_nothing(result), *_never(result), *_too_often(result), *ended]
    if not faults:
        return ""
    causes: Counter[str] = Counter()
    for kind in result.transactions.values():
        causes.update(kind.failed)
    reasons = [f"{cause} ({count:,} times)" for cause, count in causes.most_common(_CAUSES)]
    if result.unfinished:
        stuck = result.unfinished
        reasons.append(
            f"{stuck.count:,} had not ended {DRAIN_S:g} s after the window, the oldest after"
            f" {stuck.oldest_s + DRAIN_S:.0f} s"
        )
    return ": ".join(["; ".join(faults), *(["; ".join(reasons)] if reasons else [])])


def ended(name: str, commits: Sequence[int]) -> str:
    """Say that a kind had none in the window's last quarter, of which at its rate in the others at
    least `DUE_LEAST` were due; empty: it did not end.

    :param commits: of that kind, in each whole second.
    """
    quarter = len(commits) // 4
    last = len(commits) - quarter
    before, after = sum(commits[:last]), sum(commits[last:])
    if not quarter or after or before * quarter < DUE_LEAST * last:
        return ""
    return f"{name}: {before:,} in the first {last} s, none in the last {quarter} s"


def _nothing(result: Repeat) -> list[str]:
    done = sum(kind.completed for kind in result.transactions.values())
    return [] if done else ["no transaction got through in the window"]


def _never(result: Repeat) -> list[str]:
    """Kinds of which none got through."""
    return [
        f"{name}: none of {kind.attempted:,} got through"
        for name, kind in result.transactions.items()
        if kind.attempted >= ASKED_LEAST and not kind.completed
    ]


def _too_often(result: Repeat) -> list[str]:
    """Kinds of which too many failed; all, where a driver does not tell it by kind."""
    counts = {
        name: (sum(kind.failed.values()), kind.attempted)
        for name, kind in result.transactions.items()
        if kind.completed
    }
    done = sum(kind.completed for kind in result.transactions.values())
    if done and not any(kind.failed for kind in result.transactions.values()):
        counts["all"] = result.failed, result.failed + done
    return [
        f"{name}: {failed:,} of {asked:,} failed, more than {FAILED_SHARE:.0%}"
        for name, (failed, asked) in counts.items()
        if failed >= ASKED_LEAST and failed > FAILED_SHARE * asked
    ]
