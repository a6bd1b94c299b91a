-- RF2 (clause 2.5.3): orders and their lines, in one transaction that an error rolls back.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DELETE FROM hotset_tpch.lineitem WHERE l_orderkey IN (:1);
DELETE FROM hotset_tpch.orders WHERE o_orderkey IN (:1);
COMMIT TRANSACTION;
