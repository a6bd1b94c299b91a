-- VACUUM marks pages all-visible, which index-only scans need, and sets now the hint bits that the
-- first run would otherwise write. It must stand alone, hence one batch each.
VACUUM (ANALYZE) hotset_tpch.lineitem
-- GO
VACUUM (ANALYZE) hotset_tpch.orders
-- GO
VACUUM (ANALYZE) hotset_tpch.partsupp
-- GO
VACUUM (ANALYZE) hotset_tpch.customer
-- GO
VACUUM (ANALYZE) hotset_tpch.part
-- GO
VACUUM (ANALYZE) hotset_tpch.supplier
-- GO
VACUUM (ANALYZE) hotset_tpch.nation
-- GO
VACUUM (ANALYZE) hotset_tpch.region
