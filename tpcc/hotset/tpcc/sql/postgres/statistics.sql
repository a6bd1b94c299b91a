-- Freeze now what a run would otherwise rewrite (hint bits, freezing), and let the planner know
-- the sizes. VACUUM must stand alone, hence one batch each; the tables go side by side.
VACUUM (FREEZE, ANALYZE) order_line
-- GO
VACUUM (FREEZE, ANALYZE) stock
-- GO
VACUUM (FREEZE, ANALYZE) customer
-- GO
VACUUM (FREEZE, ANALYZE) orders
-- GO
VACUUM (FREEZE, ANALYZE) history
-- GO
VACUUM (FREEZE, ANALYZE) new_order
-- GO
VACUUM (FREEZE, ANALYZE) item
-- GO
VACUUM (FREEZE, ANALYZE) district
-- GO
VACUUM (FREEZE, ANALYZE) warehouse
