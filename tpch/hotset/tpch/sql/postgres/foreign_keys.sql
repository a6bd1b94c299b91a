-- Clause 1.4.2.3; one batch per referencing table, side by side: no two of them wait for each other
-- in a circle, because the references make none.
ALTER TABLE hotset_tpch.lineitem ADD CONSTRAINT lineitem_order FOREIGN KEY (l_orderkey) REFERENCES hotset_tpch.orders (o_orderkey);
ALTER TABLE hotset_tpch.lineitem ADD CONSTRAINT lineitem_partsupp FOREIGN KEY (l_partkey, l_suppkey) REFERENCES hotset_tpch.partsupp (ps_partkey, ps_suppkey);
-- GO
ALTER TABLE hotset_tpch.orders ADD CONSTRAINT orders_customer_key FOREIGN KEY (o_custkey) REFERENCES hotset_tpch.customer (c_custkey);
-- GO
ALTER TABLE hotset_tpch.partsupp ADD CONSTRAINT partsupp_part FOREIGN KEY (ps_partkey) REFERENCES hotset_tpch.part (p_partkey);
ALTER TABLE hotset_tpch.partsupp ADD CONSTRAINT partsupp_supplier_key FOREIGN KEY (ps_suppkey) REFERENCES hotset_tpch.supplier (s_suppkey);
-- GO
ALTER TABLE hotset_tpch.customer ADD CONSTRAINT customer_nation_key FOREIGN KEY (c_nationkey) REFERENCES hotset_tpch.nation (n_nationkey);
-- GO
ALTER TABLE hotset_tpch.supplier ADD CONSTRAINT supplier_nation_key FOREIGN KEY (s_nationkey) REFERENCES hotset_tpch.nation (n_nationkey);
-- GO
ALTER TABLE hotset_tpch.nation ADD CONSTRAINT nation_region FOREIGN KEY (n_regionkey) REFERENCES hotset_tpch.region (r_regionkey);
