-- The schema, with the mark by which a drop knows that hotset made it.
CREATE SCHEMA hotset_tpcc;
COMMENT ON SCHEMA hotset_tpcc IS 'hotset: TPC-C';
