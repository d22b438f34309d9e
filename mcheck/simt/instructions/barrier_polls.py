"""Polls around a barrier, as they are reached: what a lane waits for, and the test of the lanes at the barrier."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mcheck.frontend.ptx.code import Unit
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.barrier_waits import (
    BarrierWait,
    comes_back,
    find_barrier_wait,
    is_deciding_barrier,
    registers_around,
)
from mcheck.simt.execution.cluster import Cluster, ComesBack
from mcheck.simt.execution.compiler import Compiler, FindBarrierWait
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.value_tests import AwaitedValue


def lone_lanes(c: Cluster, mask: Mask) -> list[int]:
    """The lanes that are the only ones of their CTA."""
    lanes = np.flatnonzero(mask)
    _, first, count = np.unique(c.lanes.cta[lanes], return_index=True, return_counts=True)
    return [int(lane) for lane in lanes[first[count == 1]]]


def find_barrier_waits(k: Compiler, unit: Unit, at: int, size: int) -> FindBarrierWait | None:
    """How to find what a lane waits for at a load that is repeated around a barrier; ``None`` if the function has no
    such barrier.
    """
    if at not in k.barrier_waits:
        k.barrier_waits[at] = _make_finder(k, unit, at, size) if _has_deciding_barrier(k, unit) else None
    return k.barrier_waits[at]


def _has_deciding_barrier(k: Compiler, unit: Unit) -> bool:
    if unit.start not in k.barriers_decide:
        k.barriers_decide[unit.start] = any(map(is_deciding_barrier, unit.function.body))
    return k.barriers_decide[unit.start]


def _make_finder(k: Compiler, unit: Unit, at: int, size: int) -> FindBarrierWait:
    body, place = unit.function.body, at - unit.start
    values, known = k.lanes.values, k.lanes.quality
    read = sorted(registers_around(unit.function, place) - {r.index for r in body[place].defs})
    found: dict[tuple[tuple[int, int], ...], BarrierWait | None] = {}

    def sure_registers(lane: int, registers: Iterable[int]) -> dict[int, int]:
        sure = [r for r in registers if not known[unit.frame + r][lane]]
        if k.differs is not None:
            sure = [r for r in sure if not k.differs(unit.frame + r, np.array([lane]))[0]]
        return {r: int(values[unit.frame + r][lane]) for r in sure}

    def find(lane: int) -> tuple[AwaitedValue, int, ComesBack] | None:
        given = sure_registers(lane, read)
        key = tuple(given.items())
        if key not in found:
            found[key] = find_barrier_wait(unit.function, place, given)
        wait = found[key]
        if wait is None or type_size(wait.wait.type) != size:
            return None
        barrier, again = wait.barrier, wait.again

        def come_back(others: Mask) -> bool:
            used = sorted(registers_around(unit.function, barrier))
            alike = {tuple(sure_registers(one, used).items()) for one in np.flatnonzero(others).tolist()}
            return all(comes_back(unit.function, barrier, dict(one), again=again) for one in alike)

        return wait.wait, unit.start + barrier, come_back

    return find
