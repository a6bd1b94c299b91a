-- What a load has just made. No CASCADE: what somebody else has put on top stays, and so do these.
DROP TABLE warehouse, district, customer, history, new_order, orders, order_line, item, stock;
DROP FUNCTION neword(integer, integer, integer, integer, integer[], integer[], integer[]);
DROP FUNCTION payment(integer, integer, integer, integer, integer, varchar, numeric);
DROP FUNCTION ostat(integer, integer, integer, varchar);
DROP FUNCTION delivery(integer, integer);
DROP FUNCTION slev(integer, integer, integer);
