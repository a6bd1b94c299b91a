SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname
