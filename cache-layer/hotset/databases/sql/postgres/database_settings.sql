-- Settings of a database, and of roles in it, one a row.
SELECT r.rolname, split_part(one, '=', 1), substr(one, strpos(one, '=') + 1)
FROM pg_db_role_setting AS s
JOIN pg_database AS d ON d.oid = s.setdatabase
LEFT JOIN pg_roles AS r ON r.oid = s.setrole
CROSS JOIN LATERAL unnest(s.setconfig) AS one
WHERE d.datname = '{name}'
ORDER BY 1 NULLS FIRST, 2
