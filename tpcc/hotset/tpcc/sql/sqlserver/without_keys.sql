-- Tables without a primary key: keys are made last, so a load that was killed leaves them out. A run
-- would read whole tables, and be slow without a word.
SELECT wanted.name
  FROM (VALUES ('customer'), ('district'), ('item'), ('new_order'), ('order_line'), ('orders'),
               ('stock'), ('warehouse')) AS wanted (name)
 WHERE NOT EXISTS (SELECT 1 FROM sys.indexes AS i
                    WHERE i.object_id = OBJECT_ID('hotset_tpcc.' + wanted.name)
                      AND i.is_primary_key = 1)
 ORDER BY wanted.name
