-- One batch per table, the largest first: batches run side by side. What clause 1.5 allows:
-- primary keys, foreign keys and date columns.
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX lineitem_part_supplier ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate);
-- GO
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE INDEX orders_orderdate ON orders (o_orderdate);
-- GO
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey);
-- GO
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
-- GO
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
CREATE INDEX customer_nation ON customer (c_nationkey);
-- GO
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
CREATE INDEX supplier_nation ON supplier (s_nationkey);
-- GO
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
-- GO
ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
