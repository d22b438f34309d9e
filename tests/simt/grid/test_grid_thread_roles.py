"""Which threads have one role: those that could change their places, and the order of everything else is as before."""

from __future__ import annotations

import numpy as np
import pytest

from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import SHARED_BASE, MemoryMap
from mcheck.ir.ops import Op
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.pairs.cluster_accesses import AccessReader

BARRIER = ops.Barrier(text="bar.sync 0", kind="sync", barrier=Const(0), count=None)
WARP_BARRIER = ops.WarpSync(text="bar.warp.sync", mask=Const(0xFFFFFFFF))
EACH_HERE = Lanes(tuple(SHARED_BASE + 8 * k for k in range(WARP)))
EACH_THERE = Lanes(tuple(SHARED_BASE + 4096 + 8 * k for k in range(WARP)))
JOINT = ops.AsyncStore(
    text="st.async", address=Const(SHARED_BASE), srcs=(Const(1),), type="u32", mbar=Const(SHARED_BASE)
)
OWN_CELLS = ops.AsyncStore(text="st.async", address=EACH_THERE, srcs=(Const(1),), type="u32", mbar=EACH_HERE)


def roles(code: list[Op]) -> list[int]:
    """The roles of two lanes of one warp, and of one of the next warp, with this code."""
    reader = AccessReader(memory=MemoryMap(()), shapes={})
    reader.read(code, np.array([0, 1]), [0, 1])
    reader.read(code, np.array([2]), [0])
    return [reader.roles[k] for k in range(3)]


def test_threads_that_pass_the_same_barriers_have_one_role() -> None:
    assert len(set(roles([BARRIER]))) == 1


@pytest.mark.parametrize("op", [WARP_BARRIER, JOINT], ids=lambda op: op.text)
def test_what_is_of_a_warp_tells_its_threads_from_those_of_others(op: Op) -> None:
    first, second, other = roles([BARRIER, op])
    assert first == second != other


def test_lanes_that_signal_to_mbarriers_of_their_own_by_one_operation_have_roles_of_their_own() -> None:
    assert len(set(roles([BARRIER, OWN_CELLS]))) == 3
