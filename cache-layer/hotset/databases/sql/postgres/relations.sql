-- Files of this database by their number; a table's TOAST and its index belong to the table.
-- Names as SQL writes them, so that each can be given back to the server. Last, whether the relation
-- is the server's own: what initdb makes has an OID below FirstNormalObjectId (16384, in
-- access/transam.h). Large objects lie in the catalog, but are the user's.
WITH part AS (
  SELECT oid AS owner, reltoastrelid AS part FROM pg_class WHERE reltoastrelid <> 0
  UNION ALL
  SELECT o.oid, i.indexrelid FROM pg_class o JOIN pg_index i ON i.indrelid = o.reltoastrelid
)
SELECT d.oid::bigint, pg_relation_filenode(c.oid)::bigint,
       quote_ident(n.nspname) || '.' || quote_ident(r.relname)
       || CASE WHEN r.relkind = 'i' THEN ' (index)' ELSE '' END,
       CASE WHEN r.oid < 16384
             AND r.relname NOT IN ('pg_largeobject', 'pg_largeobject_loid_pn_index')
            THEN 1 ELSE 0 END
  FROM pg_class c
  LEFT JOIN part p ON p.part = c.oid
  JOIN pg_class r ON r.oid = coalesce(p.owner, c.oid)
  JOIN pg_namespace n ON n.oid = r.relnamespace
  JOIN pg_database d ON d.datname = current_database()
 WHERE pg_relation_filenode(c.oid) IS NOT NULL
