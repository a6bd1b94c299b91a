"""Performance claims, measured: `scripts/bench.sh` names the cases."""
