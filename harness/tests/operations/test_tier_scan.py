"""What `tier scan` says where it could not look."""

from __future__ import annotations

import io

from rich.console import Console

from hotset.core.errors import FAILED, HotsetError
from hotset.core.record import model_of
from hotset.monitoring.tier_status import LabelledFlash, UnreadFlash


def text_of(found: LabelledFlash) -> str:
    screen = io.StringIO()
    found.show(Console(file=screen, width=200))
    return screen.getvalue()


def test_a_device_that_could_not_be_read_is_neither_empty_nor_fine() -> None:
    """It printed dd's error and "no flash device carries a hotset label", and ended with code 0."""
    unread = UnreadFlash("/dev/vda", "it cannot be read: Input/output error")
    found = LabelledFlash((), (unread,))
    assert text_of(found) == "no flash device that could be read carries a hotset label\n"
    failure = found.failure()
    assert isinstance(failure, HotsetError)
    assert failure.exit_code == FAILED
    assert "is not known: /dev/vda: it cannot be read: Input/output error" in str(failure)
    assert model_of(LabelledFlash).model_validate(found.document())


def test_all_that_could_be_read_is_fine() -> None:
    found = LabelledFlash(())
    assert text_of(found) == "no flash device carries a hotset label\n"
    assert found.failure() is None
