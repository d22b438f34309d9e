"""The protocol engine: a stateless model checker with dynamic partial order reduction.

An execution runs the code of every thread with concrete phases and tracks causality with vector clocks. Another one is
run only where two dependent operations that no time orders could have come in the other order (``exploration``). The
model decides what is ordered, visible or racy; it is evaluated incrementally as events are added (``incremental``).
"""
