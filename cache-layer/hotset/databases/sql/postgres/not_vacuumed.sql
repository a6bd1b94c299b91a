-- Autovacuum leaves the tables of this database alone from now on, those that the role may alter; TOAST
-- comes with its table.
DO $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT c.oid
          FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't'
           AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
           AND pg_has_role(c.relowner, 'USAGE')
    LOOP
        EXECUTE format(
            'ALTER TABLE %s SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)', one
        );
    END LOOP;
END
$$
