-- The schema, with the mark by which a drop knows that hotset made it.
CREATE SCHEMA hotset_tpch;
COMMENT ON SCHEMA hotset_tpch IS 'hotset: TPC-H';
