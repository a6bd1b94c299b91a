-- The schema of an extension, quoted; no row where this database has none.
SELECT quote_ident(n.nspname)
  FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = '{name}'
