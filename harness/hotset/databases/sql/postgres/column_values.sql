-- What ANALYZE knows of a column: its type, how it is compared, its most common values with their
-- shares, and values that divide the others into equal parts, the first and the last among them.
SELECT format_type(t.oid, NULL), t.typcategory, s.n_distinct, s.most_common_freqs::text,
       s.most_common_vals::text, s.histogram_bounds::text
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_stats s
    ON s.schemaname = {schema} AND s.tablename = {relation} AND s.attname = a.attname
 WHERE a.attrelid = format('%I.%I', {schema}, {relation})::regclass AND a.attname = {column}
   AND NOT a.attisdropped
 ORDER BY s.inherited DESC
 LIMIT 1
