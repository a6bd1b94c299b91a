"""TPC-C and TPC-H on a database the user has, and their results as text."""
