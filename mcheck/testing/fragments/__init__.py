"""Idioms a statement or a few long, which threads are put together from without a plan."""
