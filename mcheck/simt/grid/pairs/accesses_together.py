"""Whether clusters that are executed together access what each of them does alone: arguments about pairs choose them by
that, and follow both together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcheck.base.records import dataclass
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.simt.grid.pairs.cluster_accesses import Access, AccessReader, Execution
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.reduction import NotReducible


@dataclass(slots=True, kw_only=True)
class _Reader(AccessReader):
    """Reads all accesses alike."""

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """None is."""
        del self, op, inner, at, size, threads
        return False

    def is_waited_for(self, at: Numbers, size: int) -> bool:
        """What is read has been checked in each cluster alone."""
        del at, size
        return True


def check_together(program: Program, executions: Sequence[Execution]) -> None:
    """Check that the threads of a program, those of one cluster after the other, access what these executions say, in
    this order. Raises ``NotReducible``.
    """
    reader = _Reader(memory=program.memory, shapes={})
    reader.read_program(program)
    together, first = reader.accesses(), 0
    for one in executions:
        mine = (together.threads >= first) & (together.threads < first + len(one.lanes))
        pairs = (
            (together.threads[mine] - first, one.accesses.threads), (together.starts[mine], one.accesses.starts),
            (together.ends[mine], one.accesses.ends), (together.writes[mine], one.accesses.writes),
        )  # fmt: skip
        if not all(np.array_equal(a, b) for a, b in pairs):
            raise NotReducible("two clusters together do something else than each alone")
        first += len(one.lanes)
