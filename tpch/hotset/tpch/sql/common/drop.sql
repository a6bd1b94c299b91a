-- What a load made. No CASCADE: what somebody else put into the schema stays, and so does all of
-- this, for the schema goes only when it is empty.
-- Children first, because of the foreign keys.
DROP TABLE IF EXISTS hotset_tpch.tpch_load, hotset_tpch.lineitem, hotset_tpch.orders,
    hotset_tpch.partsupp, hotset_tpch.part, hotset_tpch.customer, hotset_tpch.supplier,
    hotset_tpch.nation, hotset_tpch.region;
DROP SCHEMA hotset_tpch;
