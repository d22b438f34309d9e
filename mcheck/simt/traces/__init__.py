"""Transformations of recorded traces: shorter programs with the same findings, names for addresses."""
