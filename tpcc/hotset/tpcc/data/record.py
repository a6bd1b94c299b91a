"""What a load tells while it lasts, and how it fails."""

from dataclasses import dataclass

from hotset.core.errors import HotsetError


class LoadFailed(HotsetError):
    """The load did not finish."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "rows", then "indexes", "statistics", "done"."""

    warehouses_done: int
    warehouses: int
    rows: int
    seconds: float
    step: str = "rows"
