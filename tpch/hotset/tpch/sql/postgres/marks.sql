-- hotset's mark, by which `tpch drop` and `build --replace` know what they may remove.
COMMENT ON TABLE tpch_load IS 'hotset: TPC-H';
COMMENT ON TABLE lineitem IS 'hotset: TPC-H';
COMMENT ON TABLE orders IS 'hotset: TPC-H';
COMMENT ON TABLE partsupp IS 'hotset: TPC-H';
COMMENT ON TABLE part IS 'hotset: TPC-H';
COMMENT ON TABLE customer IS 'hotset: TPC-H';
COMMENT ON TABLE supplier IS 'hotset: TPC-H';
COMMENT ON TABLE nation IS 'hotset: TPC-H';
COMMENT ON TABLE region IS 'hotset: TPC-H';
