"""Diagnosis of findings: which order is missing, why, where it happens, and what would fix it."""
