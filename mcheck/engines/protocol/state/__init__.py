"""What an execution holds: clocks, agents, synchronisation objects, values, the history of accesses."""
