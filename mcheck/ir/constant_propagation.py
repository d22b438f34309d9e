"""Constant propagation over registers."""

from __future__ import annotations

from mcheck.ir import ops
from mcheck.ir.alu import UNCOMPUTED, compute, has_value
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary, apply_binary, apply_unary
from mcheck.ir.ops import Guard

Known = dict[str, int]
"""The known values of registers, by name."""


def evaluate_guard(guard: Guard | None, known: Known) -> bool | None:
    """Whether a guard holds, ``None`` if that is not known."""
    if guard is None:
        return True
    held = known.get(guard.reg.name)
    return None if held is None else bool(held) is not guard.negated


def propagate(op: ops.Alu, known: Known) -> None:
    """Execute a local computation on the known values; registers with unknown results are removed."""
    sources = [evaluate_constant(src, known) for src in op.srcs]
    values = [v for v in sources if v is not None]
    local = op.op not in ("mapa", *UNCOMPUTED) and len(values) == len(sources) and has_value(op.op, op.type, values)
    results = compute(op.op, op.type, op.src_type, values, len(op.dsts)) if local else ()
    for k, register in enumerate(op.dsts):
        if register is not None:
            known.pop(register.name, None)
            if k < len(results):
                known[register.name] = results[k]


def evaluate_constant(expr: Expr, known: Known) -> int | None:
    """The value of an operand, ``None`` if it is not known."""
    match expr:
        case Const(number):
            return number
        case Reg(name):
            return known.get(name)
        case Unary(op, inner):
            a = evaluate_constant(inner, known)
            return None if a is None else apply_unary(op, a)
        case Binary(op, left, right):
            a, b = evaluate_constant(left, known), evaluate_constant(right, known)
            if a is None or b is None or (op in ("/", "%") and not b):
                return None
            return apply_binary(op, a, b)
    return None
