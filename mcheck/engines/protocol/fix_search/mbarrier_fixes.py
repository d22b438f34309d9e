"""Fixes of mbarriers, found by trials: counts that do not match the arrivals, and missing signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mcheck.answers.advice.graph import line_of
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion, Replacement, apply_amendments
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

MAX_COUNTS = 4
"""Number of counts to try."""


def suggest_count(m: Machine, bars: Iterable[Mbarrier], is_fix: IsFix) -> str:
    """Suggest the count of an init that matches the arrivals on the object, if it differs and that is a fix."""
    tried = 0
    for bar in bars:
        init = bar.initialisation.event.op if bar.initialisation is not None else None
        if not isinstance(init, ops.MbarrierInit) or init.span is None or not isinstance(init.count, Const):
            continue
        arrive = list(_arrivals(m.program, bar.address))
        threads = {t for t, _ in arrive}
        per_thread = {sum(1 for t, _ in arrive if t == who) for who in threads}
        if init.count.value == len(threads) or not threads or tried >= MAX_COUNTS or not per_thread:
            continue
        tried += 1
        if is_fix(apply_amendments(m.program, [Replacement(_with_count(len(threads)), init.span)])):
            lines = sorted({line_of(op) for _, op in arrive})
            where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
            return (
                f"Initialise {m.label(bar.address)} at line {line_of(init)} with count {len(threads)} instead of "
                f"{init.count.value}: so many threads arrive on it, at {where}."
            )
    return ""


def _arrivals(program: Program, address: int) -> Iterator[tuple[int, Op]]:
    """Yield the threads that arrive on an object themselves, and where, by constant addresses."""
    for thread in program.threads:
        for op in thread.code:
            if isinstance(op, ops.MbarrierArrive) and op.address == Const(address):
                yield thread.index, op


def _with_count(number: int) -> Callable[[Op], Op]:
    return lambda op: replace(op, count=Const(number))  # type: ignore[call-arg]


def suggest_commit(m: Machine, bar: Mbarrier, is_fix: IsFix) -> str:
    """Suggest the tcgen05.commit by which a tensor core operation signals an object, if that is a fix."""
    last: dict[int, ops.TensorCore] = {}
    for entry in m.trace:
        if isinstance(entry.op, ops.TensorCore) and entry.op.kind in ("mma", "cp"):
            last[entry.agent] = entry.op
    for op in last.values():
        assert op.span is not None
        group = "cta_group::2" if "cta_group::2" in op.text else "cta_group::1"
        made = ops.TensorCommit(address=Const(bar.address))
        if is_fix(apply_amendments(m.program, [Insertion(made, after=True, span=op.span)])):
            name = m.label(bar.address)
            return (
                f"Nothing signals {name}: execute tcgen05.commit.{group}.mbarrier::arrive::one.b64 [{name}] after line "
                f"{line_of(op)}."
            )
    return ""
