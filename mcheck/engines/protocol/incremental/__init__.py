"""Incremental evaluation of a cat model: the relations of each new event of a growing execution graph."""
