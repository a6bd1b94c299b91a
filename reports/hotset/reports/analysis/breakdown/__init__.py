"""Where the time of a window went: users, server, devices, parts of the data."""
