"""Reductions: canonical forms, thread symmetry, merging of events."""
