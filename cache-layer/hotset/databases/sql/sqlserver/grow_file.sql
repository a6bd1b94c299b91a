ALTER DATABASE {database} MODIFY FILE (NAME = {name}, FILEGROWTH = {megabytes}MB);
