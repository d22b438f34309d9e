"""The accesses of overlapping launches, and what orders them."""
