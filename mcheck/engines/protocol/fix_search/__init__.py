"""Fixes that were tried: the program amended, run again, and free of the finding."""
