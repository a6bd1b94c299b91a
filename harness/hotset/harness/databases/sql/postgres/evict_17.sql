SELECT count(*) FROM pg_buffercache WHERE relfilenode IS NOT NULL AND pg_buffercache_evict(bufferid)
