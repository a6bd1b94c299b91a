"""The database of TPC-C: its rows, how they are loaded, and what must hold of them."""
