-- Why a session cannot write; NULL where it can.
SELECT CASE WHEN DATABASEPROPERTYEX(DB_NAME(), 'Updateability') = 'READ_ONLY' THEN
    N'database ' + DB_NAME() + N' is read-only here: name its primary replica, or set it READ_WRITE'
END
