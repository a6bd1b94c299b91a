-- Why a session cannot write; NULL where it can.
SELECT CASE
    WHEN pg_is_in_recovery() THEN
        'this server is a standby: name its primary, or promote it'
    WHEN current_setting('transaction_read_only') = 'on' THEN
        'sessions of ' || current_user || ' are read-only here: set default_transaction_read_only'
        || ' to off for the role, the database or the server'
END
