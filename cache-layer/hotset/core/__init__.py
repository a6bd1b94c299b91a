"""What all stand on: errors, sizes as types, files, machines where commands run, SQL sessions."""
