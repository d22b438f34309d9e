"""What is found in a program or a model before any execution: axioms, polling loops, slices."""
