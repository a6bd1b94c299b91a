ALTER SYSTEM SET shared_buffers = '{megabytes}MB'
