SELECT coalesce(nullif(pg_tablespace_location(dattablespace), ''), current_setting('data_directory'))
  FROM pg_database
 WHERE datname = current_database()
