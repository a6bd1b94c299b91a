-- What a load made. There is no CASCADE: what somebody else put into the schema stays, and so does all of
-- this, for the schema goes only when it is empty.
DROP TABLE IF EXISTS hotset_tpcc.warehouse, hotset_tpcc.district, hotset_tpcc.customer,
    hotset_tpcc.history, hotset_tpcc.new_order, hotset_tpcc.orders, hotset_tpcc.order_line,
    hotset_tpcc.item, hotset_tpcc.stock;
DROP PROCEDURE IF EXISTS hotset_tpcc.neword;
DROP PROCEDURE IF EXISTS hotset_tpcc.payment;
DROP PROCEDURE IF EXISTS hotset_tpcc.ostat;
DROP PROCEDURE IF EXISTS hotset_tpcc.delivery;
DROP PROCEDURE IF EXISTS hotset_tpcc.slev;
DROP SCHEMA hotset_tpcc;
