-- Tables without a primary key: keys are made last, so a load that was killed leaves them out. A run
-- would read whole tables, and be slow without a word.
SELECT wanted.name
  FROM unnest(ARRAY['customer', 'district', 'item', 'new_order', 'order_line', 'orders', 'stock',
                    'warehouse']) AS wanted (name)
 WHERE NOT EXISTS (SELECT FROM pg_constraint
                    WHERE contype = 'p' AND conrelid = to_regclass('hotset_tpcc.' || wanted.name))
 ORDER BY 1
