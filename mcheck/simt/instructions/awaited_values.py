"""What lanes wait for at a load or an atomic that is repeated, as it is reached, and the operation that waits."""

from __future__ import annotations

import numpy as np

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Reg
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.compiler import Compiler, FindWaits
from mcheck.simt.execution.lanes import Mask, Quality
from mcheck.simt.execution.waits.value_tests import AwaitedValue, find_sign_tests, find_tests
from mcheck.simt.execution.waits.value_waits import find_awaited
from mcheck.simt.instructions.access_operands import Indices, fetch_lanes


def find_waits(k: Compiler, unit: Unit, place: int, size: int) -> FindWaits | None:
    """How to find what lanes wait for at a load or an atomic that is repeated; ``None`` if nothing tests its value."""
    if place not in k.value_waits:
        k.value_waits[place] = _make_finder(k, unit, place - unit.start, size)
    return k.value_waits[place]


def _make_finder(k: Compiler, unit: Unit, at: int, size: int) -> FindWaits | None:
    statement = unit.function.body[at]
    target = statement.operands[0]
    tested = [o for t in find_tests(unit.function, at) for o in unit.function.body[t].operands[1:]]
    operands = list(dict.fromkeys((*tested, *find_sign_tests(unit.function, at).values())))
    if operands:
        operands += [o for o in statement.operands[1:] if isinstance(o, ptx.Register) and o not in operands]
    fetches = {o: k.fetch(unit, o) for o in operands}
    known: dict[tuple[int | None, ...], AwaitedValue | None] = {}
    if not operands:
        return None

    def waited(mask: Mask) -> list[tuple[Mask, AwaitedValue | None]]:
        lanes = np.flatnonzero(mask)
        given = {o: fetch_lanes(fetches[o], mask, lanes) for o in operands if o != target}
        states = [_without_differing(k, unit, o, lanes, q).astype(np.uint64) for o, (_, q) in given.items()]
        table = np.stack([np.zeros(len(lanes), np.uint64), *(v for v, _ in given.values()), *states])
        kinds, back = np.unique(table, axis=1, return_inverse=True)
        out: list[tuple[Mask, AwaitedValue | None]] = []
        for n in range(kinds.shape[1]):
            found = kinds[1:, n].tolist()
            # The value that an atomic has returned is certain in the order that is followed.
            sure = [
                None if q & ~taint.ORDER else v for v, q in zip(found[: len(given)], found[len(given) :], strict=True)
            ]
            values: dict[ptx.Operand, int | None] = dict(zip(given, sure, strict=True))
            key = tuple(values.values())
            if key not in known:
                wait = find_awaited(unit.function, at, values.get)
                known[key] = wait if wait is not None and type_size(wait.type) == size else None
            some = np.zeros_like(mask)
            some[lanes[back.reshape(-1) == n]] = True
            out.append((some, known[key]))
        return out

    return waited


def _without_differing(k: Compiler, unit: Unit, operand: ptx.Operand, lanes: Indices, known: Quality) -> Quality:
    """What is known of an operand in other clusters, too."""
    if k.differs is None or isinstance(operand, ptx.Immediate):
        return known
    other = k.differs(unit.frame + operand.index, lanes) if isinstance(operand, ptx.Register) else np.True_
    return np.where(other, known | np.uint8(taint.UNKNOWN), known)


def await_load(op: ops.Load, wait: AwaitedValue, address: Expr) -> ops.Op:
    """A load that is repeated until its value satisfies the awaited condition."""
    kind = wait.type if "s" in (wait.type[0], op.type[0]) else op.type  # the comparison says whether there is a sign
    load = replace(op, address=address, dsts=(Reg("spun"),), type=kind)
    compare = wait.operator, Const(wait.right)
    return ops.Await(inner=load, compare=compare, span=op.span, text=op.text, section=op.section)
