"""The synchronisation skeleton of an executed cluster as a sketch in block form (docs/kernel-sketches.md)."""
