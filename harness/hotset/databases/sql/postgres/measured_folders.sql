-- Each folder with something of this database, from the data directory on.
SELECT CASE pg_tablespace_location(t.oid)
       WHEN '' THEN 'base/' || d.oid
       ELSE 'pg_tblspc/' || t.oid
       END
  FROM pg_database AS d
  JOIN pg_tablespace AS t ON d.oid IN (SELECT pg_tablespace_databases(t.oid))
 WHERE d.datname = current_database() AND t.spcname <> 'pg_global'
 ORDER BY t.oid <> d.dattablespace, t.spcname
