"""Progress of a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hotset.core.progress import Reporter


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "rows", then "indexes", "statistics", "done"."""

    warehouses_done: int
    warehouses: int
    rows: int
    seconds: float
    step: str = "rows"

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        from hotset.core.progress import Measured

        if self.step != "rows":
            report.figure(f"{self.seconds:.1f} s, {self.step}")
            return
        share = self.warehouses_done / self.warehouses
        left = f", ETA {self.seconds / share - self.seconds:.0f} s" if share else ""
        report.figure(
            f"{self.seconds:.1f} s, {self.warehouses_done} of {self.warehouses}"
            f" warehouses, {self.rows:,} rows{left}",
            Measured.by_rate(self.warehouses_done, self.warehouses, "warehouses", self.seconds),
        )
