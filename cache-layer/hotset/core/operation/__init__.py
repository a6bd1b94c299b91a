"""What an operation is: declared once by its subject, for every way to call it."""
