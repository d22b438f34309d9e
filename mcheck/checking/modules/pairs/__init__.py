"""Proofs about a grid from pairs of its clusters: one argument for each kind of protocol."""
