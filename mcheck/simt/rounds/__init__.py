"""Rounds of a loop that are not executed one by one, since each does what the one before it did at other addresses.

``loop_rounds`` decides that, and jumps; ``round_forms`` has the registers as functions of the round; ``kept_apart``
shows, at the end, that what was not executed conflicts with nothing.
"""
