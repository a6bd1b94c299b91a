-- What has one of these names in the schema where an unqualified CREATE makes things: name, kind,
-- owner, comment, rows by the planner's estimate (null: not known), the name that DROP takes, OID.
SELECT c.relname::text,
       CASE WHEN c.relispartition THEN 'partition'
            WHEN c.relkind = 'r' THEN 'table'
            WHEN c.relkind = 'p' THEN 'partitioned table'
            WHEN c.relkind = 'v' THEN 'view'
            WHEN c.relkind = 'm' THEN 'materialized view'
            WHEN c.relkind = 'f' THEN 'foreign table'
            WHEN c.relkind = 'S' THEN 'sequence'
            WHEN c.relkind IN ('i', 'I') THEN 'index'
            ELSE 'type' END,
       pg_get_userbyid(c.relowner)::text,
       obj_description(c.oid, 'pg_class'),
       nullif(c.reltuples, -1)::bigint,
       format('%I.%I', current_schema(), c.relname),
       c.oid::bigint
  FROM pg_class AS c
 WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ({names})
UNION ALL
SELECT t.typname::text, 'type', pg_get_userbyid(t.typowner)::text, obj_description(t.oid, 'pg_type'),
       NULL, format('%I.%I', current_schema(), t.typname), t.oid::bigint
  FROM pg_type AS t
 WHERE t.typnamespace = current_schema()::regnamespace AND t.typname IN ({names})
   AND t.typrelid = 0 AND t.typelem = 0
UNION ALL
SELECT p.proname::text,
       CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
       pg_get_userbyid(p.proowner)::text,
       obj_description(p.oid, 'pg_proc'),
       NULL,
       format('%I.%I(%s)', current_schema(), p.proname, oidvectortypes(p.proargtypes)),
       p.oid::bigint
  FROM pg_proc AS p
 WHERE p.pronamespace = current_schema()::regnamespace AND p.proname IN ({routines})
