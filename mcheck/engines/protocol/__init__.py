"""The protocol engine: a stateless model checker of kernels with dynamic partial order reduction.

An execution runs every thread's code with concrete phases and keeps causality as vector clocks; another one is run
only where two operations that nothing orders in time would have led elsewhere in the other order (``exploration``).
What is ordered, visible or racy is decided by the model, evaluated as events are added (``incremental``).
"""
