"""Where the users' time went: the sentence, the rows, what could not be seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hotset.reports.analysis.breakdown import time_use
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import TimeUse
from tests import documents

weights = st.lists(st.floats(0.001, 1), min_size=7, max_size=7)


def use(**shares: float) -> TimeUse:
    given: dict[str, float] = dict.fromkeys(time_use.CLASSES, 0.0) | shares
    return TimeUse(**given, sessions=8)


def with_after(after: TimeUse) -> RunDocument:
    return with_use(documents.complete(), "accelerated", after)


def waiting_on_flash(document: RunDocument, ceiling: TimeUse) -> RunDocument:
    return with_use(document, "all-flash", ceiling)


def with_use(document: RunDocument, name: ArmName, after: TimeUse) -> RunDocument:
    return documents.with_windows(document, lambda arm, _: {"time": after} if arm == name else {})


def test_the_sentence_says_before_now_and_what_follows() -> None:
    assert time_use.sentence(documents.complete()) == (
        "Before, 79 % of the users' time was waiting for data reads; now 69 % is CPU;"
        " more flash would not help."
    )


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (use(data_read=0.6, cpu=0.4), "now 60 % is waiting for data reads; storage still takes"),
        (use(data_read=0.6, cpu=0.4), "60 %, so a larger cache can still help."),
        (use(log=0.3, cpu=0.7), "storage still takes 30 %, so a faster log can still help."),
        (use(data_write=0.2, lock=0.8), "waiting for locks; storage still takes 20 %, so faster"),
        (
            use(lock=0.55, log=0.08, cpu=0.37),
            "takes 55 %, and what those who hold them wait for",
        ),
        (use(lock=0.55, log=0.08, cpu=0.37), "whether faster storage would help is not known."),
        (use(client=0.9, log=0.05, cpu=0.05), "is the network and the client; more flash would"),
    ],
)
def test_what_follows_depends_on_what_storage_still_takes(after: TimeUse, words: str) -> None:
    said = time_use.sentence(with_after(after))
    assert said is not None
    assert words in said


def test_more_flash_does_not_help_where_flash_alone_waits_as_much() -> None:
    document = with_after(use(data_read=0.47, data_write=0.23, log=0.14, cpu=0.16))
    said = time_use.sentence(waiting_on_flash(document, use(data_read=0.85, cpu=0.15)))
    assert said is not None
    assert said.endswith(
        "storage still takes 84 %, and 85 % on flash alone: more flash would not help."
    )
    slower = time_use.sentence(waiting_on_flash(document, use(data_read=0.5, cpu=0.5)))
    assert slower is not None
    assert slower.endswith("storage still takes 84 %, so a larger cache can still help.")


def test_sessions_that_wait_for_a_cpu_after_their_read_do_not_wait_for_flash() -> None:
    """The accelerated arm's devices have some 1.3 requests under way, its origin's writes aside."""
    document = with_after(use(data_read=0.6, cpu=0.4).model_copy(update={"sessions": 16}))
    assert "larger cache can still help" in str(time_use.sentence(document))
    bound = with_cpu(document, 0.99)
    assert str(time_use.sentence(bound)).endswith(
        "the CPU is 99 % busy, and for 10 sessions that wait for storage the devices have 0.83"
        " requests under way: more flash would not help."
    )
    few = with_after(use(data_read=0.6, cpu=0.4).model_copy(update={"sessions": 2}))
    assert "larger cache can still help" in str(time_use.sentence(with_cpu(few, 0.99)))


def with_cpu(document: RunDocument, busy: float) -> RunDocument:
    return documents.with_windows(document, lambda *_: {"server_cpu": busy})


def test_what_was_not_sampled_is_not_said() -> None:
    bare = documents.complete().model_copy(update={"arms": ()})
    assert time_use.sentence(bare) is None
    assert time_use.rows(bare) == []


@given(st.lists(weights, min_size=1, max_size=5))
def test_mean_shares_add_up(each: list[list[float]]) -> None:
    uses = [
        TimeUse(**{n: w / sum(one) for n, w in zip(time_use.CLASSES, one, strict=True)}, sessions=4)
        for one in each
    ]
    mean = time_use.mean([None, *uses])
    assert mean is not None
    assert sum(getattr(mean, name) for name in time_use.CLASSES) == pytest.approx(1)
    assert 0 <= time_use.storage_share(mean) <= 1


def test_shares_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"add up to 0\.500"):
        use(cpu=0.5)


def test_what_could_not_be_seen_is_said_once() -> None:
    document = documents.complete()
    hidden = documents.with_windows(document, lambda *_: {"time_missing": "GRANT pg_monitor TO me"})
    assert time_use.missing(hidden) == ["GRANT pg_monitor TO me"]
    assert time_use.missing(document) == []
