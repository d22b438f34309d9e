"""Proofs for every N: recurrence of states, shared prefixes of executions, rotation symmetry."""
