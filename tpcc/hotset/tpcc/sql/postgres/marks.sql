-- hotset's mark, by which `tpcc drop` and `build --replace` know what they may remove.
COMMENT ON TABLE warehouse IS 'hotset: TPC-C';
COMMENT ON TABLE district IS 'hotset: TPC-C';
COMMENT ON TABLE customer IS 'hotset: TPC-C';
COMMENT ON TABLE history IS 'hotset: TPC-C';
COMMENT ON TABLE new_order IS 'hotset: TPC-C';
COMMENT ON TABLE orders IS 'hotset: TPC-C';
COMMENT ON TABLE order_line IS 'hotset: TPC-C';
COMMENT ON TABLE item IS 'hotset: TPC-C';
COMMENT ON TABLE stock IS 'hotset: TPC-C';
COMMENT ON FUNCTION neword(integer, integer, integer, integer, integer[], integer[], integer[]) IS 'hotset: TPC-C';
COMMENT ON FUNCTION payment(integer, integer, integer, integer, integer, varchar, numeric) IS 'hotset: TPC-C';
COMMENT ON FUNCTION ostat(integer, integer, integer, varchar) IS 'hotset: TPC-C';
COMMENT ON FUNCTION delivery(integer, integer) IS 'hotset: TPC-C';
COMMENT ON FUNCTION slev(integer, integer, integer) IS 'hotset: TPC-C';
