"""Clusters that wait for each other's signals."""
