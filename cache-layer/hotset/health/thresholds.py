"""From where on something is worth saying: all limits in one place, each with its reason.

The rules for Prometheus (reports/grafana/hotset-rules.yml) have the same; a test reads both.
"""

from __future__ import annotations

DAY_S = 24 * 3600
HOUR_S = 3600

RATIO_DROP = 0.02
"""Of a hit ratio, 0 to 1, below the lowest of the earlier days: two points more go to the origin. A
smaller drop nobody feels: at 95 % it is less than half as many misses again, and the storage has to
bear the spread of days anyway."""
DAYS = 7
"""So many earlier days are compared: a week, with its weekend, and what a history keeps whole."""
DAYS_MIN = 4
"""Of fewer days their lowest says nothing of how low a day may be by chance."""
HOUR_REQUESTS_MIN = 100
"""An hour with fewer has no hit ratio to speak of: one request is a point of it."""
DAY_REQUESTS_MIN = 10_000
"""A day with fewer says nothing of a cache: a cron job would be its hit ratio."""
COVERED_MIN = 0.5
"""The share of an hour that must have been watched, and of the day's requests that must be in hours
which an earlier day has as well: from less the rest would be guessed."""

DIRTY_SHARE = 0.5
"""Of the cache, dirty all day long: half of it is lost with the flash, a flush takes long, and what
is dirty cannot make room for what is read."""
DIRTY_RISEN = 0.2
"""Of the cache, dirty and for a day never less than the hour before: nothing is written back. A
tier may leave 10 % dirty for good (bcache's ``writeback_percent``), so twice that."""
DIRTY_HOURS = 24
"""A day has its quiet hours, in which a healthy tier writes back."""
DIRTY_HOURS_MIN = 20
"""Of them, so many must have been recorded."""

METADATA_FULL = 0.9
"""Of the room for metadata: a cache whose metadata are full becomes read-only."""
POOL_FULL = 0.9
"""Of a thin pool's data or metadata: at 100 % writes wait for room, or fail."""
WEAR_HIGH = 0.8
"""Of a flash's stated endurance: a year is left where it took four to come there, which is time to
order another. From 1 on its maker warrants nothing."""
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
"""Of the hit ratio: what another size or policy must give at least, by the lower of two estimates.
They know the heat by regions, not by blocks, and are off by some points."""
FULL = 0.95
"""A cache that is less full than that is still being filled: its hit ratio says nothing of its
size."""
