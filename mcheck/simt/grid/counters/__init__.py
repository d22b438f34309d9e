"""Clusters that count themselves in one word."""
