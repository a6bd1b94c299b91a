"""From where on something is worth saying: all limits in one place, each with its reason.

The rules for Prometheus (reports/grafana/hotset-rules.yml) have the same; a test reads both.
"""

from __future__ import annotations

DAY_S = 24 * 3600
HOUR_S = 3600

RATIO_DROP = 0.02
"""Drop of a hit ratio (0 to 1) below the lowest earlier day: two points more go to the origin. A
smaller drop is not felt: at 95 % it is less than half as many misses again, and the storage has to
bear the spread of days anyway."""
DAYS = 7
"""So many earlier days are compared: a week, with its weekend, and what a history keeps whole."""
DAYS_MIN = 4
"""Least number of them: the lowest of fewer says nothing of how low a day may be by chance."""
HOUR_REQUESTS_MIN = 100
"""An hour with fewer has no hit ratio to speak of: one request is a point of it."""
DAY_REQUESTS_MIN = 10_000
"""A day with fewer says nothing of a cache: a cron job would be its hit ratio."""
COVERED_MIN = 0.5
"""The share of an hour that must have been watched, and of the day's requests that must be in hours
which an earlier day has as well: from less the rest would be guessed."""

DIRTY_SHARE = 0.5
"""Share of the cache, dirty all day long: half of it is lost with the flash, a flush takes long,
and what is dirty cannot make room for what is read."""
DIRTY_RISEN = 0.2
"""Share of the cache, dirty and for a day never less than the hour before: nothing is written
back. A tier may leave 10 % dirty for good (bcache's ``writeback_percent``), so twice that."""
DIRTY_HOURS = 24
"""A day has its quiet hours, in which a healthy tier writes back."""
DIRTY_HOURS_MIN = 20
"""Number of those hours that must have been recorded."""

METADATA_FULL = 0.9
"""Share of the room for metadata: a cache whose metadata is full becomes read-only."""
POOL_FULL = 0.9
"""Share of a thin pool's data or metadata: at 100 % writes wait for room, or fail."""
WEAR_HIGH = 0.8
"""Share of a flash's stated endurance: a year is left where it took four to come there, which is
time to order another. From 1 on its maker warrants nothing."""
WARMUP_LATE_S = 2 * HOUR_S
"""A scheduled warm-up that takes longer ends after its users have come, who compete with it."""

HOT_SHARE = 0.1
"""A table or file that gets so much of the requests decides about the hit ratio."""
HOT_TIMES = 3.0
"""… and three times its share of before is no longer a busy day."""
CACHED_ENOUGH = 0.95
"""A hot table is cached when so much of it is: the rest are mostly blocks that nobody reads."""
RECENT_MAX_S = 2 * DAY_S
"""The heat "of the last day" is that since the last look before it: of more than two days it would
be of another week."""
GAIN_MIN = 0.05
"""Least gain in hit ratio that another size or policy must give, by the lower of two estimates.
They know the heat by regions, not by blocks, and are off by some points."""
FULL = 0.95
"""A cache that is less full than that is still being filled: its hit ratio says nothing of its
size."""
