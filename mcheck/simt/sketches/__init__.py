"""The skeleton of a followed cluster as a sketch in block form (docs/kernel-sketches.md)."""
