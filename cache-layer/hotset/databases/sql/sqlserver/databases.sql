SELECT name FROM sys.databases ORDER BY name
