"""Long operations as child processes that outlive the server, the browser and the shell."""
