-- Orders ever entered, as HammerDB counts them: its change per minute is NOPM.
SELECT sum(d_next_o_id) FROM hotset_tpcc.district
