-- The columns of these tables, in order, and the parameters of these functions.
SELECT attrelid::bigint, attname || ' ' || format_type(atttypid, atttypmod), attnum::integer
  FROM pg_attribute WHERE attrelid IN ({tables}) AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT oid::bigint, pg_get_function_arguments(oid), 0 FROM pg_proc WHERE oid IN ({routines})
 ORDER BY 1, 3
