SELECT current_setting('server_version'), current_setting('server_version_num')::integer
