"""What `release.py` is made of: programs, the bill of materials, licences, the changelog."""
