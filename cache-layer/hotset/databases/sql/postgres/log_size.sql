ALTER SYSTEM SET {setting} = '{megabytes}MB'
