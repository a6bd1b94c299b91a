-- Made last: a database without it is not, or not wholly, loaded.
CREATE TABLE tpch_load (scale_factor decimal(12, 4) NOT NULL);
INSERT INTO tpch_load (scale_factor) VALUES (:1);
