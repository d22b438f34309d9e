"""Concrete data: mbarrier states, reductions, copies, tensor footprints. No engine, no text, no reports here."""
