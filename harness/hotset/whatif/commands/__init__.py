"""Commands of what-if questions: traces, caches and predictions."""
