"""The policies of hotset's own engine: which blocks its cache keeps."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["hotset", "smq", "lru", "sieve", "s3-fifo", "arc"]
"""Policies of ``hotset-engine tier --policy``; the first is the default."""
POLICIES: tuple[Policy, ...] = get_args(Policy)
