"""Findings in words: which order is missing, why, where it happens, and what would fix it."""
