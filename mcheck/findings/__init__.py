"""Findings: the catalogue of codes, suppression, ordering, and quick fixes."""
