"""Looks at words of other clusters, and loads of what is published with what they find, by lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.lane_arithmetic import type_bits
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.looks.known_bits import ZERO, Bits, extend
from mcheck.simt.grid.looks.warp_states import MAX_CASES, Case, Cells, Lanes, State
from mcheck.simt.grid.pairs.cluster_accesses import NON_COHERENT


def look_at(
    statement: ptx.Statement, address: Bits, state: State, mine: Lanes, look: Callable[[int, int], Sequence[Case]]
) -> list[Bits] | None:
    """Let these lanes look: what each register gets, by case. Each element of a vector is an access of its own (8.2.4).
    ``None`` if an address is not known, or not aligned.
    """
    kind, target = statement.opcode.type, statement.operands[0]
    items = target.items if isinstance(target, ptx.Vector) else (target,)
    size, places = type_bits(kind) // 8, np.broadcast_to(address.value, (WARP,))
    if address.unknown[mine].any() or (places[mine] % np.uint64(size * statement.opcode.vector)).any():
        return None
    found = {
        lane: combine([look(int(places[lane]) + k * size, size) for k in range(len(items))])
        for lane in np.flatnonzero(mine).tolist()
    }
    count = max(map(len, found.values()), default=1)
    values = np.zeros((len(items), 2, count, WARP), np.uint64)
    alive = np.zeros((count, WARP), np.bool_)
    state.settle()
    alive[0] = state.here & ~mine
    cells: list[tuple[Cells, ...]] = [()] * WARP
    for lane, cases in found.items():
        alive[: len(cases), lane] = True
        cells[lane] = tuple(frozenset[int]().union(*(one.cells for one in case)) for case in cases)
        for (number, case), k in product(enumerate(cases), range(len(items))):
            values[k, :, number, lane] = case[k].bits.value[0], case[k].bits.unknown[0]
    state.alive, state.cells = alive, tuple(cells)
    state.look = id(statement), np.where(mine, places, ZERO).tobytes(), alive.tobytes(), state.cells
    state.acquired = mine if statement.opcode.has("acquire") else np.zeros_like(mine)
    return [
        extend(Bits(*(part if count > 1 else part[0] for part in values[k])), kind)
        for k, item in enumerate(items)
        if isinstance(item, ptx.Register)
    ]


def combine(elements: Sequence[Sequence[Case]]) -> list[tuple[Case, ...]]:
    """The cases of a look at several words, one for each element: all combinations of theirs, if those are few."""
    given = [list(cases) for cases in elements]
    for k in reversed(range(len(given))):
        if prod(map(len, given)) > MAX_CASES:
            joined = given[k][0]
            for case in given[k][1:]:
                joined = joined.join(case)
            given[k] = [joined]
    return list(product(*given))


def read_published(op: Op, address: Bits, state: State, mine: Lanes) -> set[int] | None:
    """The bytes that these lanes load by a weak load, if all were published with what each has found last, whatever
    that is, and the lane has acquired it; ``None`` if not. ``address`` and ``mine`` may be by case.
    """
    if not isinstance(op, ops.Load) or op.sem != "weak" or op.proxy != "generic" or NON_COHERENT in op.text:
        return None
    if op.non_coherent or op.matrix_rows or op.multimem is not None:
        return None
    size = type_size(op.type) * op.scalar_count
    place, unknown = (np.broadcast_to(x, state.alive.shape) for x in (address.value, address.unknown))
    read = set[int]()
    for case, lane in np.argwhere(state.alive & mine).tolist():
        at = int(place[case, lane])
        published = state.cells[lane][case] if state.cells and state.cells[lane] else frozenset[int]()
        if (
            unknown[case, lane]
            or at % size
            or not state.acquired[lane]
            or not published.issuperset(range(at, at + size))
        ):
            return None
        read.update(range(at, at + size))
    return read
