-- Types of a prepared statement's parameters, and whether each is a number.
SELECT format_type(t.oid, NULL), t.typcategory
  FROM pg_prepared_statements p, unnest(p.parameter_types) WITH ORDINALITY u(type, place)
  JOIN pg_type t ON t.oid = u.type
 WHERE p.name = 'hotset_suggest'
 ORDER BY u.place
