"""The state of an execution: vector clocks, agents, synchronisation objects, memory values, access histories."""
