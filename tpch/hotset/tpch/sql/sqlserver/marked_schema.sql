-- The schema, with the mark by which a drop knows that hotset made it.
CREATE SCHEMA hotset_tpch
GO
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-H', 'SCHEMA', 'hotset_tpch';
