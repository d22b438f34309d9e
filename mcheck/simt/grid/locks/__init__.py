"""Clusters that take locks."""
