-- VACUUM marks pages all-visible, which index-only scans need, and sets now the hint bits that the
-- first run would otherwise write. It must stand alone, hence one batch each.
VACUUM (ANALYZE) lineitem
-- GO
VACUUM (ANALYZE) orders
-- GO
VACUUM (ANALYZE) partsupp
-- GO
VACUUM (ANALYZE) customer
-- GO
VACUUM (ANALYZE) part
-- GO
VACUUM (ANALYZE) supplier
-- GO
VACUUM (ANALYZE) nation
-- GO
VACUUM (ANALYZE) region
