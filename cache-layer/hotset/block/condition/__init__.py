"""The condition that devices say they are in: how worn a flash is, how full a pool."""
