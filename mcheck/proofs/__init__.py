"""Proofs for every N: recurrence of states, executions of several programs at once, rotation symmetry."""
