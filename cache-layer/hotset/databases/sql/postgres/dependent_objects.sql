-- What needs one of these tables, their row types or these functions, and is none of them nor a
-- part of one: views, foreign keys, functions, tables that inherit, columns of the row's type.
WITH given (class, id) AS (
    SELECT 'pg_class'::regclass, oid FROM pg_class WHERE oid IN ({tables})
    UNION ALL
    SELECT 'pg_type'::regclass, oid FROM pg_type
     WHERE typrelid IN ({tables})
        OR typelem IN (SELECT oid FROM pg_type WHERE typrelid IN ({tables}))
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN ({tables})
    UNION ALL
    SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid IN ({tables})
    UNION ALL
    SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE oid IN ({routines})
)
SELECT DISTINCT CASE WHEN rule.oid IS NOT NULL
                     THEN pg_describe_object('pg_class'::regclass, rule.ev_class, 0)
                     ELSE pg_describe_object(needs.classid, needs.objid, needs.objsubid) END
  FROM pg_depend AS needs
  JOIN given ON (given.class, given.id) = (needs.refclassid, needs.refobjid)
  LEFT JOIN pg_rewrite AS rule ON needs.classid = 'pg_rewrite'::regclass AND rule.oid = needs.objid
 WHERE needs.deptype = 'n'
   AND (needs.classid, needs.objid) NOT IN (SELECT class, id FROM given)
   AND coalesce(rule.ev_class NOT IN ({tables}), true)
 ORDER BY 1
