"""Fixes of mbarriers, found by trials: counts that do not match the arrivals, and missing signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Code, Sites, say
from mcheck.base.records import replace
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.fix_search.trials import IsFix
from mcheck.engines.protocol.state.sync_objects import Mbarrier
from mcheck.findings.fix import Change, Fix, Fixes, Property, advise
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion, Replacement
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

MAX_COUNTS = 4
"""Number of counts to try."""


def suggest_count(m: Machine, bars: Iterable[Mbarrier], is_fix: IsFix) -> Fixes:
    """Suggest the count of an init that matches the arrivals on the object, if it differs and that is a fix, for all
    objects that lack it alike, as the stages of a ring, or for this one alone.
    """
    tried: list[tuple[int, int]] = []
    for bar in bars:
        wrong = _wrong_count(m.program, bar)
        if wrong is None or wrong in tried or len(tried) >= MAX_COUNTS:
            continue
        tried.append(wrong)
        alike = [other for other in m.mbarriers.values() if _wrong_count(m.program, other) == wrong]
        for group in (alike, [bar]) if len(alike) > 1 else ([bar],):
            spans = dict.fromkeys(span for other in group if (span := _init_of(other).span) is not None)
            if is_fix([Replacement(_with_count(wrong[1]), span) for span in spans]):
                why = say("so many threads arrive on it, at {}", _arrival_sites(m, bar))
                return (Fix((_count(m, bar, wrong, len(group)),), why=why),)
    return ()


def explain_low_count(m: Machine, bars: Iterable[Mbarrier]) -> Fixes:
    """Say which count matches the threads that arrive on the first of the objects that more threads arrive on than its
    init counts. They may also be meant to arrive in different rounds.
    """
    for bar in bars:
        wrong = _wrong_count(m.program, bar)
        if wrong is not None and wrong[1] > wrong[0]:
            else_ = "if not, wait for each round in one of them before they arrive in the next"
            counted = f"if the {wrong[1]} threads that arrive at "
            meant = say("{}{} all count in one round; {}", counted, _arrival_sites(m, bar), else_)
            return (Fix((_count(m, bar, wrong),), provided=meant),)
    return ()


def _arrival_sites(m: Machine, bar: Mbarrier) -> Sites:
    found = {site_of(op) for _, op in _arrivals(m.program, bar.address)}
    return Sites(tuple(sorted(found, key=lambda site: site.line)))


def _count(m: Machine, bar: Mbarrier, wrong: tuple[int, int], stages: int = 1) -> Change:
    return Change(
        what=Property.COUNT, sites=(site_of(_init_of(bar)),), subject=(m.thing_at(bar.address),),
        new=str(wrong[1]), old=str(wrong[0]), stages=stages,
    )  # fmt: skip


def _init_of(bar: Mbarrier) -> Op:
    assert bar.initialisation is not None
    return bar.initialisation.event.op


def _wrong_count(program: Program, bar: Mbarrier) -> tuple[int, int] | None:
    """The count of an object's init and the number of threads that arrive on it, if these differ."""
    init = _init_of(bar) if bar.initialisation is not None else None
    if not isinstance(init, ops.MbarrierInit) or init.span is None or not isinstance(init.count, Const):
        return None
    threads = len({thread for thread, _ in _arrivals(program, bar.address)})
    return None if threads in (0, init.count.value) else (init.count.value, threads)


def _arrivals(program: Program, address: int) -> Iterator[tuple[int, Op]]:
    """Yield the threads that arrive on an object themselves, and where, by constant addresses."""
    for thread in program.threads:
        for op in thread.code:
            if isinstance(op, ops.MbarrierArrive) and op.address == Const(address):
                yield thread.index, op


def _with_count(number: int) -> Callable[[Op], Op]:
    return lambda op: replace(op, count=Const(number))  # type: ignore[call-arg]


def suggest_commit(m: Machine, bar: Mbarrier, is_fix: IsFix) -> Fixes:
    """Suggest the tcgen05.commit by which a tensor core operation signals an object, if that is a fix."""
    last: dict[int, ops.TensorCore] = {}
    for entry in m.trace:
        if isinstance(entry.op, ops.TensorCore) and entry.op.kind in ("mma", "cp"):
            last[entry.agent] = entry.op
    for op in last.values():
        assert op.span is not None
        group = "cta_group::2" if "cta_group::2" in op.text else "cta_group::1"
        made = ops.TensorCommit(address=Const(bar.address))
        if is_fix([Insertion(made, after=True, span=op.span)]):
            signalled = m.thing_at(bar.address)
            commit = Code(f"tcgen05.commit.{group}.mbarrier::arrive::one.b64")
            return (advise("Nothing signals {}: execute {} [{}] after {}", signalled, commit, signalled, site_of(op)),)
    return ()
