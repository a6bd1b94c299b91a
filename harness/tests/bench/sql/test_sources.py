"""Scripts as they are given: names, weights, variables, and what none may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.bench.sql import sources
from hotset.bench.sql.sources import ScriptError
from hotset.core.rights import Names
from hotset.operations.remote import _without_weight


def test_scripts_have_weights_and_names_of_their_own(tmp_path: Path) -> None:
    assert sources.split("a@b/c.sql@7") == ("a@b/c.sql", 7)
    assert list(_without_weight("/srv/a.sql@7")) == ["/srv/a.sql"]
    assert Names.SCRIPT
    with pytest.raises(ValueError, match="the weight behind @"):
        sources.split("a.sql@0")
    with pytest.raises(ValueError, match="No such file"):
        sources.source(f"{tmp_path}/none.sql")
    with pytest.raises(ValueError, match="give NAME=VALUE"):
        sources.parse_definitions(["scale"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\\shell rm x\n", 1),
        ("SELECT 1;\n\\setshell x rm\n", 2),
        ("SELECT 1 \\SHELL rm x\n", 1),
        ("SELECT 1;\n\n\\ shell rm x\n", 3),
        ("\\\\\n  shell rm x\n", 1),
    ],
)
def test_a_script_that_would_run_a_program_is_refused(tmp_path: Path, text: str, line: int) -> None:
    """As pgbench would read it, with the rights of whoever runs hotset."""
    (tmp_path / "a.sql").write_text(text)
    with pytest.raises(ScriptError, match=rf"a\.sql:{line}: .*scripts run no programs"):
        sources.source("a.sql", tmp_path)
