"""SQL Server, over ODBC."""
