"""Strong accesses of data, followed as weak ones: volatile partial sums, atomics whose results nobody uses.

A strong access is followed word by word and thread by thread: which write it reads, where its write comes in coherence
order. Where none of the bytes that it accesses decides anything (no value of them is awaited, or reaches a branch, an
address or a count), all of that is for nothing. Let P be a program and P' the same with such accesses weak, an atomic
being a weak read and a weak write.

*P' has all executions of P, with less order.* Take an execution X of P, and let X' be the same events and edges with
these accesses weak. X' has the values of X, so that each thread does what it does in X. No access that is followed
in P' has lost an edge, for no followed access has bytes in common with a weak one. All axioms forbid something that
strong or morally strong accesses have, except that of the coherence order of morally strong writes, of which X' has
fewer pairs. Patterns of release and acquire, observations and chains of atomics are made of strong accesses: what
synchronises in X', synchronises in X.

*So what X lacks, X' lacks.* A race of X is between two conflicting accesses that causality does not order and that are
not morally strong. In X' they conflict, they are not ordered, and they are not morally strong. The same holds of the
other findings, as of the shipped models no finding takes more order (as in
``mcheck.engines.protocol.determined_waits``). Waits are no such accesses, so X deadlocks only if X' does. Two accesses
that are weak in P' and morally strong in P race in X' alone, so that is not reported
(``mcheck.engines.protocol.operations.weakened_accesses``), nor that their order is open.

So if nothing is found in P', and its executions are covered, the same holds of P. If anything is found, it may be for
the order that P' lacks: then P is explored, and what is found in P' is forgotten.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.effects.unwritten_objects import places_of
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.analysis.representative_lanes import TrackedBytes
from mcheck.engines.protocol.analysis.slicing import copied_data_matters, maps_may_change, needed_registers
from mcheck.engines.protocol.passes import Pass, Passes
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

Weakenable = ops.Load | ops.Store | ops.Atomic


def weaken_accesses(program: Program, passes: Passes) -> Program | None:
    """The program with the strong accesses weak whose values decide nothing; ``None`` if agents become no fewer."""
    code = program.operations
    if Pass.WEAKENED_ACCESSES not in passes or not any(_may_be_weak(op, frozenset()) for op in code):
        return None
    if any(ops.performed_operation(op).facets.copies for op in code) and (
        copied_data_matters(program) or maps_may_change(program)
    ):
        return None  # what a copy has read may decide something
    needed = needed_registers(program)
    kept: dict[int, Op] = {}
    data: dict[int, Weakenable] = {}
    for thread, names in zip(program.threads, needed, strict=True):
        for op in thread.code:
            if _may_be_weak(op, names):
                assert isinstance(op, Weakenable)
                data[id(op)] = op
            elif _decides(op, names):
                kept[id(op)] = op
    followed: list[tuple[int, int]] = []
    for op in kept.values():
        found = _bytes_of(op)
        if found is None:
            return None
        followed += found
    decisive = TrackedBytes(followed)
    weak = {
        key: _weakened(op)
        for key, op in data.items()
        if key not in kept
        and (found := _bytes_of(op)) is not None
        and not any(decisive.overlaps(low, high) for low, high in found)
    }
    threads = tuple(
        replace(t, code=tuple(weak.get(id(op), op) for op in t.code)) if any(id(op) in weak for op in t.code) else t
        for t in program.threads
    )
    out = replace(program, threads=threads)
    return out if len(partition_lanes(out, passes)) < len(partition_lanes(program, passes)) else None


def _may_be_weak(op: Op, names: frozenset[str]) -> bool:
    """Whether a relaxed access returns nothing that matters; ``names`` are the registers that do."""
    if not isinstance(op, Weakenable) or op.sem != "relaxed" or op.scope is None:
        return False
    if op.proxy != "generic" or op.multimem is not None or op.scalar_count != 1:
        return False
    match op:
        case ops.Load():
            results, plain = op.dsts, not op.matrix_rows
        case ops.Store():
            results, plain = (), not op.matrix_rows
        case _:
            results, plain = (op.dst,), op.op != "cas"
    return plain and not any(r is not None and r.name in names for r in results)


def _decides(op: Op, names: frozenset[str]) -> bool:
    """Whether an access is followed: a strong one, a wait, or one that returns something that matters."""
    inner = ops.performed_operation(op)
    if not isinstance(inner, ops.ScalarAccess):
        return False
    if isinstance(op, ops.Await) or inner.sem != "weak":
        return True
    return isinstance(inner, ops.Load) and any(r is not None and r.name in names for r in inner.dsts)


def _bytes_of(op: Op) -> list[tuple[int, int]] | None:
    """The bytes that an access touches, in whatever lane; ``None`` if only an execution shows."""
    inner = ops.performed_operation(op)
    assert isinstance(inner, ops.ScalarAccess)
    size = type_size(inner.type) * inner.scalar_count
    places = places_of(inner.address)
    return None if None in places else [(at, at + size) for at in places if at is not None]


def _weakened(op: Weakenable) -> Op:
    """An access as a weak one, which keeps its scope: so it is told from others."""
    return replace(op, sem="weak") if isinstance(op, ops.Atomic) else replace(op, sem="weak", volatile=False)
