"""One module for each page of the console: its routes, and what they show and do."""
