"""Memory orders of operations that release or acquire themselves, instead of a fence beside them (8.4, 8.8)."""

from __future__ import annotations

from collections.abc import Collection

from mcheck.answers.advice.graph import site_of
from mcheck.answers.advice.scope_mismatch import scope_of
from mcheck.base.phrase import say
from mcheck.findings.fix import Change, Property
from mcheck.ir import ops
from mcheck.ir.ops import Op


def order_with(op: Op, halves: Collection[str]) -> str | None:
    """The order of an operation that has some of ``release`` and ``acquire`` as well; ``None`` if none is legal."""
    inner = ops.performed_operation(op)
    own = str(getattr(inner, "sem", ""))
    if getattr(inner, "volatile", False) or own not in ("relaxed", "acquire", "release") or scope_of(op) is None:
        return None
    every = {*halves, own} - {"relaxed"}
    if len(every) > 1:
        return "acq_rel" if isinstance(inner, ops.Atomic) else None
    return next(iter(every), own)


def change_of(op: Op, what: Property, new: str) -> Change:
    """A change of an operation by the name of its instruction."""
    site, inner = site_of(op), ops.performed_operation(op)
    return Change(what=what, sites=(site,), new=new, subject=say("the {} of {}", _base_name(inner), site))


def _base_name(op: Op) -> str:
    """The name of an instruction without its modifiers."""
    match op:
        case ops.Atomic():
            return "red" if op.is_red else "atom"
        case ops.Load():
            return "ld"
        case ops.Store():
            return "st"
    return "arrive" if isinstance(op, ops.MbarrierArrive) else "wait"
