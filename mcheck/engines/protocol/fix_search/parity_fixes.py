"""Waits for mbarriers whose parity is the same in every round, found by trials.

The parity of the phases of an mbarrier alternates, so of the waits of one thread in a loop those after the first return
at once or wait for a round too much (9.7.13.15.16). Whatever follows from that, in this thread or in others that it
overtakes, is mended by a parity that flips.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mcheck.answers.advice.graph import site_of
from mcheck.answers.advice.repeated_phases import RepeatedWait
from mcheck.base.errors import Span
from mcheck.base.records import replace
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.findings.fix import Fixes
from mcheck.ir import ops
from mcheck.ir.amendment import Rewriting
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

MAX_TRIED = 3
"""Number of sets of waits to try."""

Code = tuple[Op, ...]


def suggest_alternation(m: Machine, is_fix: IsFix) -> Fixes:
    """Suggest to flip the parity of the waits of a thread that wait for one parity always, if that is a fix."""
    for waits in _constant_waits(m.program)[:MAX_TRIED]:
        spans = frozenset(op.span for op in waits)
        if is_fix([Rewriting(partial(_with_alternating_parities, spans))]):
            bar, parity = waits[0].address, waits[0].parity
            assert isinstance(bar, Const)
            assert isinstance(parity, Const)
            return (RepeatedWait(m.thing_at(bar.value), parity.value, site_of(waits[1]), always=True).fix,)
    return ()


def _constant_waits(program: Program) -> list[list[ops.MbarrierWait]]:
    """Of each set of statements by which a thread waits several times for one parity of an mbarrier, and for no other,
    the waits for one mbarrier.
    """
    found: dict[frozenset[Span | None], list[ops.MbarrierWait]] = {}
    for code in {id(t.code): t.code for t in program.threads}.values():
        for waits in _by_mbarrier(code).values():
            if len(waits) > 1 and len({op.parity for op in waits}) == 1:
                found.setdefault(frozenset(op.span for op in waits), waits)
    return list(found.values())


def _by_mbarrier(code: Code) -> dict[int, list[ops.MbarrierWait]]:
    waits: dict[int, list[ops.MbarrierWait]] = {}
    for op in map(ops.performed_operation, code):
        if isinstance(op, ops.MbarrierWait) and isinstance(op.address, Const) and isinstance(op.parity, Const):
            waits.setdefault(op.address.value, []).append(op)
    return waits


def _with_alternating_parities(spans: frozenset[Span | None], code: Code) -> Code:
    """The code, whose waits at these places, where they wait for one parity of an mbarrier always, alternate."""
    same = {bar for bar, waits in _by_mbarrier(code).items() if len({op.parity for op in waits}) == 1}
    return tuple(_alternate(code, spans, same))


def _alternate(code: Code, spans: frozenset[Span | None], bars: set[int]) -> Iterator[Op]:
    rounds = dict.fromkeys(bars, 0)
    for op in code:
        wait = ops.performed_operation(op)
        if not isinstance(wait, ops.MbarrierWait) or wait.span not in spans or not isinstance(wait.address, Const):
            yield op
            continue
        bar = wait.address.value
        if bar not in rounds or not isinstance(wait.parity, Const):
            yield op
            continue
        flipped = replace(wait, parity=Const((wait.parity.value + rounds[bar]) % 2))
        rounds[bar] += 1
        yield replace(op, inner=flipped) if isinstance(op, ops.Await) else flipped
