"""The explicit engine: enumerates every execution of a program that a model allows."""
