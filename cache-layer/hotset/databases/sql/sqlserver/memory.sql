-- The server's view of the machine, which inside a container is the container's limit.
SELECT CAST(physical_memory_kb AS bigint) * 1024 FROM sys.dm_os_sys_info
