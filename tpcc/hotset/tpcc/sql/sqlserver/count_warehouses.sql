-- Warehouses there are, and the highest number: equal in a complete database.
SELECT count(*), coalesce(max(w_id), 0) FROM hotset_tpcc.warehouse
