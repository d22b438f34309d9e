"""A kernel with a parameter that is any number: which registers grow with it, and how its trace repeats."""
