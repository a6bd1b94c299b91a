"""What is done to a disk is done to the one that is meant: never to another because no name, or an
empty one, was given."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hotset.core.errors import RequestError
from hotset.operations import table

NAMED = {
    "tier deactivate": "disk",
    "tier destroy": "flash_name",
    "tier detach": "disk",
    "tier repair": "disk",
}
"""What takes a disk down, or cannot be undone."""
WHOSE = ("disk", "flash_name", "machine")


def test_what_takes_a_disk_down_or_cannot_be_undone_names_it() -> None:
    for one in table.every():
        field = next((name for name in WHOSE[:2] if name in one.fields), None)
        if one.name not in NAMED:
            assert not one.destroys or field is None or one.fields[field].is_required(), one.name
            continue
        assert field == NAMED[one.name]
        with pytest.raises(RequestError, match="needs it") as refused:
            one.parse({})
        assert refused.value.field == field


def test_a_name_that_is_given_and_empty_is_refused_by_every_operation() -> None:
    """Also where it may be left out: then it means the only disk, all disks or this computer."""
    tried = 0
    for one in table.every():
        for name in set(WHOSE) & set(one.fields):
            if name == "machine" and one.fields[name].default is None:
                continue  # another, to be looked at as well
            for empty in ("", None):
                with pytest.raises(ValidationError) as refused:
                    one.request.model_validate({name: empty})
                assert (name,) in [error["loc"] for error in refused.value.errors()], one.name
                tried += 1
    assert tried > 80


def test_whoever_trusts_the_flash_or_takes_the_origin_names_the_disk() -> None:
    activate = table.find("tier activate")
    for wish in ("keep_flash", "break_reservation"):
        with pytest.raises(RequestError, match="name the disk") as refused:
            activate.parse({wish: True})
        assert refused.value.field == wish
        assert activate.parse({wish: True, "disk": "shop"}).disk == "shop"
