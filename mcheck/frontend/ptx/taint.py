"""Taint: how far the value of a register is known, as bits that are joined wherever values are combined."""

from __future__ import annotations

UNKNOWN = 1
"""The value is unknown: data, opaque arithmetic, memory that nothing has written."""
ORDER = 2
"""The value depends on the order in which the threads were run here: an atomic or a strong load has returned it."""
MISSING = 4
"""The value comes from a parameter that the launch does not give."""
POLL = 8
"""The answer of a poll of an mbarrier outside a waiting loop; assumed to be false."""
CONVERGED = 16
"""``activemask``: the lanes that converged here."""
TOKEN = 32
"""The state that an arrive returned, by an internal number."""
NAMELESS = 64
"""With ``UNKNOWN``: the value has no name either (``mcheck.simt.execution.value_numbering``); it may be any."""
COUNTED = 128
"""With ``ORDER``: it depends on the assumed initial value of a counter (``mcheck.simt.execution.waits.counters``)."""
UNKNOWN_NAMELESS = UNKNOWN | NAMELESS
