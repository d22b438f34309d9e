"""Where operands of an operation lie in global memory, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mcheck.ir.def_use import numbers_in
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.ops import Op
from mcheck.simt.grid.pairs.reduction import NotReducible

Numbers = NDArray[np.int64]


def numbers_of(operand: Expr, lanes: Sequence[int]) -> Numbers:
    """The values of an operand in some lanes of a warp. Raises ``NotReducible`` if they are not known."""
    match operand:
        case Const(value):
            return np.full(len(lanes), value, np.int64)
        case Lanes(values):
            return np.array([values[k] for k in lanes], np.int64)
    raise NotReducible("an address is not known")


def places_of(address: Expr, lanes: Sequence[int]) -> Numbers | None:
    """The addresses of an access of global memory in some lanes of a warp; ``None`` for other memory."""
    at = numbers_of(address, lanes)
    ours = (at >= GLOBAL_BASE) & (at < SHARED_BASE)
    if not ours.any():
        return None
    if not ours.all():
        raise NotReducible("an access may be of shared or of global memory")
    return at


def mentions_global(op: Op) -> bool:
    """Whether an operand may be an address of global memory."""
    return any(GLOBAL_BASE <= n < SHARED_BASE for n in numbers_in(op))
