ALTER SYSTEM SET temp_tablespaces = 'hotset_temp'
