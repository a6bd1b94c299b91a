-- What a load has just made.
DROP TABLE warehouse;
DROP TABLE district;
DROP TABLE customer;
DROP TABLE history;
DROP TABLE new_order;
DROP TABLE orders;
DROP TABLE order_line;
DROP TABLE item;
DROP TABLE stock;
DROP PROCEDURE neword;
DROP PROCEDURE payment;
DROP PROCEDURE ostat;
DROP PROCEDURE delivery;
DROP PROCEDURE slev;
