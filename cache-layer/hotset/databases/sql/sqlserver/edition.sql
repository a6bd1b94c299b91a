-- The engine's edition (4: Express) and its major version (17: 2025).
SELECT CAST(SERVERPROPERTY('EngineEdition') AS int),
       CAST(SERVERPROPERTY('ProductMajorVersion') AS int)
