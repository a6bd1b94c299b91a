-- What a load made. No CASCADE: what somebody else put into the schema or on top stays, and so does all
-- of this, for the schema goes only when it is empty.
DROP TABLE IF EXISTS hotset_tpcc.warehouse, hotset_tpcc.district, hotset_tpcc.customer,
    hotset_tpcc.history, hotset_tpcc.new_order, hotset_tpcc.orders, hotset_tpcc.order_line,
    hotset_tpcc.item, hotset_tpcc.stock;
DROP FUNCTION IF EXISTS
    hotset_tpcc.neword(integer, integer, integer, integer, integer[], integer[], integer[]),
    hotset_tpcc.payment(integer, integer, integer, integer, integer, varchar, numeric),
    hotset_tpcc.ostat(integer, integer, integer, varchar),
    hotset_tpcc.delivery(integer, integer),
    hotset_tpcc.slev(integer, integer, integer);
DROP SCHEMA hotset_tpcc;
