-- Freeze now what a run would otherwise rewrite (hint bits, freezing), and let the planner know
-- the sizes. VACUUM must stand alone, hence one batch each; the tables go side by side.
VACUUM (FREEZE, ANALYZE) hotset_tpcc.order_line
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.stock
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.customer
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.orders
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.history
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.new_order
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.item
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.district
-- GO
VACUUM (FREEZE, ANALYZE) hotset_tpcc.warehouse
