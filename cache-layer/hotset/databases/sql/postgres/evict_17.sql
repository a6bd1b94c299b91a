SELECT count(*) FROM {place}.pg_buffercache WHERE relfilenode IS NOT NULL AND {place}.pg_buffercache_evict(bufferid)
