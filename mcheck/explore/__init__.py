"""The exhaustive engine: every execution of a program that a model allows."""
