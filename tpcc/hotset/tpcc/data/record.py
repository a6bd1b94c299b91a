"""What a load tells while it lasts, and how it fails."""

from dataclasses import dataclass


class LoadFailed(Exception):
    """The load did not finish."""

    exit_code = 4
    http_status = 424


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "rows", then "indexes", "statistics", "done"."""

    warehouses_done: int
    warehouses: int
    rows: int
    seconds: float
    step: str = "rows"
