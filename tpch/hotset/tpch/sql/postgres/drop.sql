-- What a load has just made. No CASCADE: what somebody else has put on top stays, and so do these.
DROP TABLE tpch_load, lineitem, orders, partsupp, part, customer, supplier, nation, region
