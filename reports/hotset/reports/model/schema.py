"""The version of the JSON that hotset prints and keeps, and its history."""

from dataclasses import dataclass
from typing import Final

from hotset.core.record import Record

# Schema history
#   1  2026-11  first version
#   2  2026-11  power runs of TPC-H, more arms; a document of version 1 is one of version 2
#   3  2026-11  prices and costs, parts, others_cpu and the command; one of version 2 is one of 3
#   4  2026-11  latencies from HDR histograms: p90, p99.9, p99.99; one of version 3 is one of 4
#   5  2026-11  where the users' time goes, user and system CPU, steadiness; one of 4 is one of 5
#   6  2026-11  curves over users, thresholds, predictions beside them; one of 5 is one of 6
#   7  2026-11  what went through each device, what the server counted; one of 6 is one of 7
#   8  2026-11  SQL of one's own in place of TPC-C, highest rates within limits; 7 is one of 8
#   9  2026-11  cache policies as arms; a document of version 8 is one of version 9
#  10  2026-11  scenarios on modelled disks; a document of version 9 is one of version 10
#  11  2026-11  steadiness that is not known, and of reads; preparation; one of 10 is one of 11
#  12  2026-11  how rows were drawn, isolation and seed of each window; one of 11 is one of 12
#  13  2026-11  measurements of a database as it is, CPU that is not known; one of 12 is one of 13
#  14  2026-11  runs and phases that are under way; a document of version 13 is one of version 14
#  15  2026-11  no slowed storage, no emulated CPU; one of 14 without them is one of version 15
SCHEMA_VERSION: Final = 15


@dataclass(frozen=True, kw_only=True)
class Versioned(Record):
    """A result whose JSON goes by this version."""

    schema_version: int = SCHEMA_VERSION
