"""Clusters that look at each other's words, and do the same whatever they find."""
