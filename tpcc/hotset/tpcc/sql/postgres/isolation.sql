-- The isolation level of a session like the users', whatever role and database set.
SELECT current_setting('transaction_isolation')
