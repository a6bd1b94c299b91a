-- One batch per table, the largest first: batches run side by side. What clause 1.5 allows:
-- primary keys, foreign keys and date columns. The clustered key comes first, since making it
-- rebuilds whatever index is there already.
ALTER TABLE hotset_tpch.lineitem ADD CONSTRAINT lineitem_pkey PRIMARY KEY CLUSTERED (l_orderkey, l_linenumber);
CREATE INDEX lineitem_part_supplier ON hotset_tpch.lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipdate ON hotset_tpch.lineitem (l_shipdate);
GO
ALTER TABLE hotset_tpch.orders ADD CONSTRAINT orders_pkey PRIMARY KEY CLUSTERED (o_orderkey);
CREATE INDEX orders_customer ON hotset_tpch.orders (o_custkey);
CREATE INDEX orders_orderdate ON hotset_tpch.orders (o_orderdate);
GO
ALTER TABLE hotset_tpch.partsupp ADD CONSTRAINT partsupp_pkey PRIMARY KEY CLUSTERED (ps_partkey, ps_suppkey);
CREATE INDEX partsupp_supplier ON hotset_tpch.partsupp (ps_suppkey);
GO
ALTER TABLE hotset_tpch.part ADD CONSTRAINT part_pkey PRIMARY KEY CLUSTERED (p_partkey);
GO
ALTER TABLE hotset_tpch.customer ADD CONSTRAINT customer_pkey PRIMARY KEY CLUSTERED (c_custkey);
CREATE INDEX customer_nation ON hotset_tpch.customer (c_nationkey);
GO
ALTER TABLE hotset_tpch.supplier ADD CONSTRAINT supplier_pkey PRIMARY KEY CLUSTERED (s_suppkey);
CREATE INDEX supplier_nation ON hotset_tpch.supplier (s_nationkey);
GO
ALTER TABLE hotset_tpch.nation ADD CONSTRAINT nation_pkey PRIMARY KEY CLUSTERED (n_nationkey);
GO
ALTER TABLE hotset_tpch.region ADD CONSTRAINT region_pkey PRIMARY KEY CLUSTERED (r_regionkey);
