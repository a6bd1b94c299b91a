"""Base of all packages: errors, sizes as types, files, machines that run commands, SQL sessions."""
