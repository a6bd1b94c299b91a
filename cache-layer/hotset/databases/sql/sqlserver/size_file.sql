ALTER DATABASE {database} MODIFY FILE (NAME = {name}, SIZE = {megabytes}MB);
