"""Findings: the catalogue of codes, suppression, the order of findings, the repair of a text."""
