-- By as many rows as each was made of: an index's own are of every row, and a sample is no match.
EXEC sp_updatestats 'resample';
