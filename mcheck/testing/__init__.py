"""What the project tests its engines with: random programs and mutated models."""
