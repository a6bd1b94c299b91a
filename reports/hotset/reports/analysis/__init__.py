"""Conclusions from a result document: statistics, the answer, comparisons, prices, caveats."""
