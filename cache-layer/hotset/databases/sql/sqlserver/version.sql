SELECT CAST(SERVERPROPERTY('ProductVersion') AS varchar(128)),
       CAST(SERVERPROPERTY('Edition') AS varchar(128)),
       CAST(@@VERSION AS varchar(300))
