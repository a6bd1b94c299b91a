-- Warehouses there are.
SELECT count(*) FROM warehouse
