SELECT name, value
  FROM (SELECT sum(xact_commit) AS commits, sum(xact_rollback) AS rollbacks,
               sum(blks_hit) AS buffer_hits, sum(blks_read) AS buffer_misses,
               sum(deadlocks) AS deadlocks, sum(temp_bytes) AS temporary_bytes
          FROM pg_stat_database) AS s
 CROSS JOIN LATERAL (VALUES ('commits', commits), ('rollbacks', rollbacks),
       ('buffer hits', buffer_hits), ('buffer misses', buffer_misses), ('deadlocks', deadlocks),
       ('temporary bytes', temporary_bytes)) AS named (name, value)
