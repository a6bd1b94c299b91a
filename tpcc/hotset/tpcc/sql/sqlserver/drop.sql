-- Tables and procedures, whichever exist.
DROP TABLE IF EXISTS warehouse, district, customer, history, new_order, orders, order_line,
    item, stock;
DROP PROCEDURE IF EXISTS neword, payment, ostat, delivery, slev;
