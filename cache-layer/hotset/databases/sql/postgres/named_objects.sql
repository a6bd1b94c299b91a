-- Tables and routines with one of these names in a schema (null: where things are made): name, kind, owner, comment, rows by the
-- planner's estimate (null: not known), the name that DROP takes.
SELECT c.relname::text, 'table', pg_get_userbyid(c.relowner)::text,
       obj_description(c.oid, 'pg_class'), nullif(c.reltuples, -1)::bigint,
       format('%I.%I', n.nspname, c.relname)
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = coalesce({schema}, current_schema()) AND c.relkind = 'r' AND c.relname IN ({names})
UNION ALL
SELECT p.proname::text, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
       pg_get_userbyid(p.proowner)::text, obj_description(p.oid, 'pg_proc'), NULL,
       format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE n.nspname = coalesce({schema}, current_schema()) AND p.proname IN ({names})
