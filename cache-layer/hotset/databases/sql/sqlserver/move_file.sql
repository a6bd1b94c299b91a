ALTER DATABASE {database} MODIFY FILE (NAME = {name}, FILENAME = {path});
