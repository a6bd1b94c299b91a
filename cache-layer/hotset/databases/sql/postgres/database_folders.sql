-- The folder of a database in each tablespace that holds something of it, from the data directory on.
-- By the bytes of its name, which need be no text of the database that is asked.
SELECT CASE pg_tablespace_location(t.oid)
       WHEN '' THEN 'base/' || d.oid
       ELSE 'pg_tblspc/' || t.oid || '/PG_'
            || current_setting('server_version_num')::int / 10000 || '_'
            || (SELECT catalog_version_no FROM pg_control_system()) || '/' || d.oid
       END
  FROM pg_database AS d
  JOIN pg_tablespace AS t ON d.oid IN (SELECT pg_tablespace_databases(t.oid))
 WHERE textsend(d.datname::text) = {name} AND t.spcname <> 'pg_global'
 ORDER BY t.oid <> d.dattablespace, t.spcname
