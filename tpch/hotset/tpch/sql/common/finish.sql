-- Written last: a database without this row is not, or not wholly, loaded.
INSERT INTO hotset_tpch.tpch_load (scale_factor) VALUES (:1)
