"""Static analyses of a program and of a model: axioms, polling loops, slicing, grouping of lanes."""
