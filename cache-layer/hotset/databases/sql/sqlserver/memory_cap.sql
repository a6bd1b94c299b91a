SELECT CAST(value_in_use AS bigint) * 1048576
  FROM sys.configurations WHERE name = 'max server memory (MB)'
