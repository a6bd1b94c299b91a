-- The setting that limits connections, its value, and how many more this role may open. Some are
-- reserved: for superusers, and (from version 16) for a role of its own. What other roles' sessions
-- are is hidden from those without pg_monitor, but not that they are somebody's in a database.
SELECT 'max_connections', max, greatest(0, max - used - reserved)
  FROM (SELECT current_setting('max_connections')::integer AS max,
               (SELECT count(*)::integer FROM pg_stat_activity
                 WHERE backend_type = 'client backend'
                    OR backend_type IS NULL AND usesysid IS NOT NULL AND datid IS NOT NULL) AS used,
               CASE WHEN rolsuper THEN 0
                    ELSE current_setting('superuser_reserved_connections')::integer
                         + coalesce(current_setting('reserved_connections', true)::integer, 0)
               END AS reserved
          FROM pg_roles WHERE rolname = current_user) AS here
