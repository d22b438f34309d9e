"""Which executions, states and events need no looking at: canonical forms, symmetry, merging."""
