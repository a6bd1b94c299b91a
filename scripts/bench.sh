#!/bin/sh
# Performance claims, measured: scripts/bench.sh [CASE] [OPTION…]; `scripts/bench.sh --help` lists the cases.
set -eu
cd "$(dirname "$0")"
exec ../.venv/bin/python -m measure "$@"
