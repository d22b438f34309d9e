"""One schedule of a program from its beginning, to be shown."""

from __future__ import annotations

from mcheck.cat.ast import Model
from mcheck.engines.protocol.analysis.lane_groups import Split, partition_lanes
from mcheck.engines.protocol.diagnosis.findings import build_step
from mcheck.engines.protocol.execution.setup import NewMbarrier, NewOrder, NewWord, prepare
from mcheck.engines.protocol.operations.scheduler import execute
from mcheck.findings.trace import Trace
from mcheck.ir.program import Program

ATTEMPTS = 40


def sample(program: Program, model: Model, *, profile: str = "ptx", unroll: int = 2) -> Trace:
    """The steps of the first schedule that the protocol engine runs; empty where lanes diverge too often."""
    agents = partition_lanes(program)
    extra: tuple[int, ...] = ()
    more: dict[int, int] = {}
    ordered: frozenset[int] = frozenset()
    for _ in range(ATTEMPTS):
        try:
            setup = prepare(program, agents, model, profile, unroll, lambda: None, None, extra, None, more, ordered)
            m = execute(setup)
        except Split as split:
            whole = {t for g in split.groups for t in g}
            rest = [tuple(t for t in a if t not in whole) for a in agents]
            agents = tuple(sorted([g for g in split.groups if g] + [r for r in rest if r]))
            continue
        except NewMbarrier as new:
            extra = (*extra, new.address)
            continue
        except NewWord as new_word:
            more[new_word.address] = new_word.size
            continue
        except NewOrder as order:
            ordered |= {order.address}
            continue
        return tuple(build_step(m, k) for k in range(len(m.trace)))
    return ()
