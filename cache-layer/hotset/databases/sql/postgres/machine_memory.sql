SELECT substring(pg_read_file('/proc/meminfo', 0, 4096, true) FROM 'MemTotal: +([0-9]+) kB')::bigint * 1024
