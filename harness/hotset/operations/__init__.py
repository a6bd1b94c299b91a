"""Table of hotset's operations, which all ways in call."""
