-- Primary keys of clause 1.4 (history has none) and the two secondary indexes every
-- implementation has. Foreign keys are left out, as is usual: the loader and the
-- procedures keep them, and consistency.sql checks what matters.
-- One batch per table and index: they are built side by side.
ALTER TABLE hotset_tpcc.order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number);
-- GO
ALTER TABLE hotset_tpcc.stock ADD PRIMARY KEY (s_w_id, s_i_id);
-- GO
ALTER TABLE hotset_tpcc.customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id);
-- By last name, in order of first name (clauses 2.5.2.2 and 2.6.2.2).
CREATE INDEX customer_by_name ON hotset_tpcc.customer (c_w_id, c_d_id, c_last, c_first);
-- GO
ALTER TABLE hotset_tpcc.orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id);
-- A customer's latest order (clause 2.6.2.2).
CREATE UNIQUE INDEX orders_by_customer ON hotset_tpcc.orders (o_w_id, o_d_id, o_c_id, o_id);
-- GO
ALTER TABLE hotset_tpcc.new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id);
ALTER TABLE hotset_tpcc.item ADD PRIMARY KEY (i_id);
ALTER TABLE hotset_tpcc.district ADD PRIMARY KEY (d_w_id, d_id);
ALTER TABLE hotset_tpcc.warehouse ADD PRIMARY KEY (w_id);
