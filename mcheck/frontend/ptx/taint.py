"""How far the value of a register is known: bits that are joined wherever values are."""

from __future__ import annotations

UNKNOWN = 1
"""Nobody knows it: data, opaque arithmetic, memory that nothing has written."""
ORDER = 2
"""It is that of the order in which the threads were run here: what an atomic or a strong load has read."""
MISSING = 4
"""It comes from a parameter that the launch does not give."""
POLL = 8
"""The answer of a poll of an mbarrier that is no wait; taken to be false."""
TOGETHER = 16
"""``activemask``: the lanes that came together here."""
TOKEN = 32
"""The state that an arrive returned, by a number of ours."""
NAMELESS = 64
"""With ``UNKNOWN``: the value is no name either (``mcheck.simt.execution.value_numbering``), it may be any."""
COUNTED = 128
"""With ``ORDER``: it depends on what a counter was taken to hold at first (``mcheck.simt.execution.counters``)."""
NOTHING = UNKNOWN | NAMELESS
