-- How many tables of this database have no setting of their own that keeps autovacuum off.
SELECT count(*)
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
   AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
   AND NOT coalesce('autovacuum_enabled=off' = ANY (c.reloptions), false)
