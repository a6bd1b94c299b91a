"""The lab that is left up: a database on an accelerated disk of this computer."""
