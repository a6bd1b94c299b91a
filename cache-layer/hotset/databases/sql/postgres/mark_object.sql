COMMENT ON {kind} {full_name} IS '{mark}'
