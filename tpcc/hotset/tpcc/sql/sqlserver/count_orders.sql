-- Orders ever entered, as HammerDB counts them: its change per minute is NOPM.
SELECT sum(CAST(d_next_o_id AS bigint)) FROM hotset_tpcc.district
