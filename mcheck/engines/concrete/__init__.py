"""The concrete engine (``mcheck exec``): one execution under a fair scheduler, with real data."""
