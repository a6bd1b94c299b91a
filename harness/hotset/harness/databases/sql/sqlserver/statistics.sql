EXEC sp_updatestats;
