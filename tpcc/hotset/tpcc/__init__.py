"""TPC-C (TPROC-C style, not an audited TPC result): schema, loader, driver, consistency checks."""
