"""What SQL Server's editions hold, without a server."""

import pytest

from hotset.databases.sqlserver.product import _BUILDING, express_limit
from hotset.tpcc.schema import estimate_bytes


@pytest.mark.parametrize(
    ("edition", "major", "gib"), [(4, 15, 10), (4, 16, 10), (4, 17, 50), (2, 16, None)]
)
def test_the_limit_of_a_database(edition: int, major: int, gib: int | None) -> None:
    found = express_limit(edition, major)
    assert found == (gib and gib * 1024**3)


def test_how_many_warehouses_express_takes() -> None:
    limit = express_limit(4, 16)
    assert limit is not None
    assert estimate_bytes(60) * _BUILDING < limit < estimate_bytes(80) * _BUILDING
