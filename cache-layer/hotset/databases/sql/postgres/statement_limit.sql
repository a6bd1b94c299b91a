-- After how many milliseconds the server ends a statement of this session (0: never), and what set that.
SELECT setting::bigint, source FROM pg_settings WHERE name = 'statement_timeout'
