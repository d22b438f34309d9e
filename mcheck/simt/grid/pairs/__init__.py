"""What the reductions of a grid to pairs of its clusters share: executed clusters, their conflicts, words of known
contents.
"""
