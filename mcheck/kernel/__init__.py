"""The protocol engine: schedules of kernel sketches, explored up to the commutation of what does not matter.

One execution runs every thread's code with concrete phases and keeps causality as clocks; a further one is run only
where two operations that nothing orders in time would have led elsewhere in the other order.
"""
