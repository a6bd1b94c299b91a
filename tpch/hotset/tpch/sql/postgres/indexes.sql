-- One batch per table, the largest first: batches run side by side. What clause 1.5 allows:
-- primary keys, foreign keys and date columns.
ALTER TABLE hotset_tpch.lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX lineitem_part_supplier ON hotset_tpch.lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipdate ON hotset_tpch.lineitem (l_shipdate);
-- GO
ALTER TABLE hotset_tpch.orders ADD PRIMARY KEY (o_orderkey);
CREATE INDEX orders_customer ON hotset_tpch.orders (o_custkey);
CREATE INDEX orders_orderdate ON hotset_tpch.orders (o_orderdate);
-- GO
ALTER TABLE hotset_tpch.partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
CREATE INDEX partsupp_supplier ON hotset_tpch.partsupp (ps_suppkey);
-- GO
ALTER TABLE hotset_tpch.part ADD PRIMARY KEY (p_partkey);
-- GO
ALTER TABLE hotset_tpch.customer ADD PRIMARY KEY (c_custkey);
CREATE INDEX customer_nation ON hotset_tpch.customer (c_nationkey);
-- GO
ALTER TABLE hotset_tpch.supplier ADD PRIMARY KEY (s_suppkey);
CREATE INDEX supplier_nation ON hotset_tpch.supplier (s_nationkey);
-- GO
ALTER TABLE hotset_tpch.nation ADD PRIMARY KEY (n_nationkey);
-- GO
ALTER TABLE hotset_tpch.region ADD PRIMARY KEY (r_regionkey);
