"""Database engines: one client adapter and one server manager per product."""
