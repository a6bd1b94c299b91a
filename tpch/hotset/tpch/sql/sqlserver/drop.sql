-- What a load has just made. Children first, because of the foreign keys.
DROP TABLE tpch_load, lineitem, orders, partsupp, part, customer, supplier, nation, region
