-- What a warm-up or a pin can name here: all databases, and this one's tables and indexes with their
-- bytes in their files, analysed or not; partitioned ones first (their partitions have the bytes),
-- then the largest. TOAST comes with its table, and counts. Of what another session has locked for
-- itself, or is about to, the size is not known: asking would wait for that session.
SELECT target, bytes FROM (
    SELECT 'database:' || datname AS target, NULL::bigint AS bytes, 0 AS kind
      FROM pg_database WHERE datallowconn AND NOT datistemplate
     UNION ALL
    SELECT CASE WHEN c.relkind IN ('i', 'I') THEN 'index:' ELSE 'table:' END
           || quote_ident(n.nspname) || '.' || quote_ident(c.relname),
           CASE WHEN c.relkind NOT IN ('p', 'I') AND NOT EXISTS (
                         SELECT FROM pg_locks AS held
                          WHERE held.relation IN (c.oid, c.reltoastrelid)
                            AND held.mode = 'AccessExclusiveLock' AND held.pid <> pg_backend_pid())
                THEN pg_table_size(c.oid) END,
           CASE WHEN c.relkind IN ('p', 'I') THEN 1 ELSE 2 END
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'm', 'p', 'i', 'I') AND c.relpersistence <> 't'
       AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
) AS every
 ORDER BY kind, bytes DESC NULLS LAST, target
 LIMIT {top}
