"""The web console: what the command line does, steered from a browser behind a login."""
