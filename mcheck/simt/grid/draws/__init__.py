"""Clusters that draw numbers from one word, tile after tile."""
