-- A table with its partitions and all their TOAST tables, or an index with those of the partitions.
-- Views and partitioned tables themselves have no files. From the data directory on.
WITH RECURSIVE tree AS (
    SELECT to_regclass({name})::oid AS oid
     UNION
    SELECT i.inhrelid FROM pg_inherits AS i JOIN tree ON i.inhparent = tree.oid
), relation AS (
    SELECT oid FROM tree
     UNION
    SELECT c.reltoastrelid FROM pg_class AS c JOIN tree USING (oid) WHERE c.reltoastrelid <> 0
), whole AS (
    SELECT oid FROM relation
     UNION
    SELECT i.indexrelid FROM pg_index AS i JOIN relation ON i.indrelid = relation.oid
     WHERE i.indrelid NOT IN (SELECT oid FROM tree)
)
SELECT c.relkind::text, pg_relation_filepath(c.oid)
  FROM whole JOIN pg_class AS c USING (oid)
 ORDER BY c.oid <> to_regclass({name})::oid, c.oid
