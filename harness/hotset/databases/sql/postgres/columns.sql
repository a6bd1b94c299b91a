-- The columns of a table, in the order in which a row has them.
SELECT attname FROM pg_attribute
 WHERE attrelid = format('%I.%I', {schema}, {relation})::regclass AND attnum > 0
   AND NOT attisdropped
 ORDER BY attnum
