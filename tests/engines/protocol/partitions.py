"""The agents of a program once lanes that diverge are told apart."""

from __future__ import annotations

from mcheck.cat.ast import Model
from mcheck.engines.protocol.analysis.lane_groups import Partition
from mcheck.engines.protocol.exploration import Search
from mcheck.ir.program import Program


def settled_partition(program: Program, model: Model) -> Partition:
    """The agents with which the executions of a program are explored."""
    search = Search(program, model, "ptx", 2, suggests_fixes=False)
    assert search.explore(60) is None
    assert search.setup is not None
    return search.setup.partition
