-- Children first, because of the foreign keys.
DROP TABLE IF EXISTS tpch_load, lineitem, orders, partsupp, part, customer, supplier, nation, region
