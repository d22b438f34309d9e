"""Formats that other programs read: SARIF, JUnit, annotations, herd's words, LaTeX, JSON of suites."""
