-- RF2 (clause 2.5.3): orders and their lines. Statements sent as one batch are one transaction.
DELETE FROM hotset_tpch.lineitem WHERE l_orderkey IN (:1);
DELETE FROM hotset_tpch.orders WHERE o_orderkey IN (:1);
