"""TPC-H: data, schema, the 22 queries per engine, their answers, power and throughput runs."""
