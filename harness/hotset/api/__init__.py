"""The HTTP API: the CLI's verbs, jobs with progress, runs and metrics, for those with a token."""
