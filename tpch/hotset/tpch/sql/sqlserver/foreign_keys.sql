-- Clause 1.4.2.3; one batch per referencing table, side by side: no two of them wait for each other
-- in a circle, because the references make none.
ALTER TABLE lineitem ADD CONSTRAINT lineitem_order FOREIGN KEY (l_orderkey) REFERENCES orders (o_orderkey);
ALTER TABLE lineitem ADD CONSTRAINT lineitem_partsupp FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey);
GO
ALTER TABLE orders ADD CONSTRAINT orders_customer_key FOREIGN KEY (o_custkey) REFERENCES customer (c_custkey);
GO
ALTER TABLE partsupp ADD CONSTRAINT partsupp_part FOREIGN KEY (ps_partkey) REFERENCES part (p_partkey);
ALTER TABLE partsupp ADD CONSTRAINT partsupp_supplier_key FOREIGN KEY (ps_suppkey) REFERENCES supplier (s_suppkey);
GO
ALTER TABLE customer ADD CONSTRAINT customer_nation_key FOREIGN KEY (c_nationkey) REFERENCES nation (n_nationkey);
GO
ALTER TABLE supplier ADD CONSTRAINT supplier_nation_key FOREIGN KEY (s_nationkey) REFERENCES nation (n_nationkey);
GO
ALTER TABLE nation ADD CONSTRAINT nation_region FOREIGN KEY (n_regionkey) REFERENCES region (r_regionkey);
