"""What synchronisation costs, as far as the choice between two instructions needs it: the order of magnitude."""

from __future__ import annotations

from collections.abc import Sequence

_BY_SCOPE = {"cta": 0.1, "cluster": 0.4, "gpu": 1.0, "gl": 1.0, "sys": 3.0}
_COSTS = (
    (("fence", "proxy", "tensormap::generic"), 400.0),
    (("fence", "proxy"), 60.0),
    (("fence", "mbarrier_init"), 60.0),
    (("fence", "sc"), 600.0),
    (("fence",), 400.0),
    (("membar",), 600.0),
    (("barrier", "cluster"), 200.0),
    (("bar", "warp"), 5.0),
    (("bar",), 30.0),
    (("barrier",), 30.0),
    (("cp", "async"), 20.0),
    (("mbarrier",), 20.0),
    (("wgmma",), 10.0),
    (("tcgen05",), 10.0),
)
OTHER = 10.0
"""The cost of an order or a scope of an access."""


def estimate_cost(opcode: Sequence[str]) -> float:
    """The cost of an instruction, in cycles by order of magnitude; a narrower scope costs less."""
    base = next((cost for head, cost in _COSTS if tuple(opcode[: len(head)]) == head), OTHER)
    scope = next((_BY_SCOPE[part] for part in opcode[1:] if part in _BY_SCOPE), 1.0)
    return base * (scope if opcode[0] != "barrier" else 1.0)
