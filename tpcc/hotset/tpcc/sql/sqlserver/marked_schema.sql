-- The schema, with the mark by which a drop knows that hotset made it.
CREATE SCHEMA hotset_tpcc
GO
EXEC sp_addextendedproperty 'hotset', 'hotset: TPC-C', 'SCHEMA', 'hotset_tpcc';
