"""What lanes that meet hand each other, as terms: the departure from a meeting returns one number."""

from __future__ import annotations

from collections.abc import Mapping

from mcheck.ir.ops import Collective
from mcheck.semantics.terms import Term
from mcheck.semantics.warp_collectives import result

_VALUE = 64
"""Bits of the value that a lane gets; the predicate stands above them."""
_OWN = 32


def pack_operands(own: tuple[Term, ...]) -> Term:
    """The operands that only the lane itself looks at, as one term."""
    out: Term = 0
    for k, operand in enumerate(own):
        part: Term = ("x", "<<", ("x", "&", operand, (1 << _OWN) - 1), _OWN * k)
        out = ("x", "|", out, part)
    return out


def unpack_result(returned: Term) -> tuple[Term, Term]:
    """The value and the predicate of what the departure from a meeting returns."""
    return ("x", "&", returned, (1 << _VALUE) - 1), ("x", ">>", returned, _VALUE)


def returned(op: Collective, mask: int, lane: int, brought: Mapping[int, int], own: int) -> int | None:
    """What the departure of a lane returns, given what every lane brings; ``None`` if the section leaves it open."""
    count = max(len(op.srcs) - 1, 0)
    operands = tuple(own >> _OWN * k & ((1 << _OWN) - 1) for k in range(count))
    value, predicate = result(op.op, op.type, mask, lane, brought, operands)
    if value is None:
        return None
    return value & ((1 << _VALUE) - 1) | (predicate or 0) << _VALUE
