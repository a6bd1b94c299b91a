"""A result as terminal text, tables, charts, HTML and Markdown."""
