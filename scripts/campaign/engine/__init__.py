"""Lives of hotset's own engine, over drives that lose data."""
