"""Demanded-bits analysis: the bits of registers that affect behaviour; the last two of a counter used modulo four.

The demanded bits of a result determine those of its operands: for a sum the bits up to the highest demanded one, for a
shifted value the bits that are shifted there (PTX ISA 9.7.1, 9.7.8). Bits are those of an infinite two's complement:
``ALL`` are -1, and those of ``SIGN`` distinguish negative numbers from others.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.ir import ops
from mcheck.ir.alu import width
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.ops import Op
from mcheck.ir.resolve import expressions

ALL = -1
SIGN = -1 << 64
"""No register has more bits."""

DemandedBits = dict[str, int]
"""The demanded bits, by register."""


def demanded_bits(code: Iterable[Op], *, stores: bool) -> DemandedBits:
    """The demanded bits of a code; unless ``stores``, stored values demand nothing."""
    asked: DemandedBits = {}
    computed: list[ops.Alu] = []
    for op in {id(op): op for op in code}.values():
        if op.guard is not None:
            _demand(op.guard.reg, ALL, asked)
        if isinstance(op, ops.Alu):
            computed.append(op)
            if op.op in ("div", "rem") and not (isinstance(op.srcs[1], Const) and op.srcs[1].value):
                _demand(op.srcs[1], ALL, asked)  # division by zero has no result
            continue
        used = defined_and_used(op)[1]
        for name, expr in expressions(op) if used else ():
            if stores or not (isinstance(op, ops.Store) and name == "srcs"):
                _demand(expr, ALL, asked)
    known: dict[int, int] = {}
    while True:
        before = dict(known)
        for op in computed:
            bits = 0
            for reg in op.dsts:
                bits |= asked.get(reg.name, 0) if reg is not None else 0
            if bits != known.get(id(op), 0):
                known[id(op)] = bits
                _demand_sources(op, bits, asked)
        if known == before:
            return asked


def _demand(expr: Expr, bits: int, asked: DemandedBits) -> None:
    """Demand bits of an operand, whose value is an unbounded integer."""
    match expr:
        case Reg(name):
            asked[name] = asked.get(name, 0) | bits
        case Unary("-" | "+", inner):
            _demand(inner, _up_to(bits), asked)
        case Unary("~", inner):
            _demand(inner, bits, asked)
        case Binary("+" | "-" | "*", left, right):
            _demand(left, _up_to(bits), asked)
            _demand(right, _up_to(bits), asked)
        case Binary("&", left, Const(mask)) | Binary("&", Const(mask), left):
            _demand(left, bits & mask, asked)
        case Binary("&" | "|" | "^", left, right):
            _demand(left, bits, asked)
            _demand(right, bits, asked)
        case Binary("<<", left, Const(places)) if places >= 0:
            _demand(left, bits >> places, asked)
        case Binary(">>", left, Const(places)) if places >= 0:
            _demand(left, bits << places, asked)
        case Binary("%", left, Const(by)) if _log(by) is not None:
            _demand(left, (by - 1) | SIGN, asked)
        case Binary("/", left, Const(by)) if (log := _log(by)) is not None:
            _demand(left, _up_to(bits << log) | SIGN, asked)
        case _:
            for name in registers_of(expr):
                asked[name] = ALL


def _demand_sources(op: ops.Alu, bits: int, asked: DemandedBits) -> None:
    """Demand the operand bits that some bits of the results depend on."""
    name, _, mode = op.op.partition(".")
    kind = op.type
    amount = op.srcs[1].value if len(op.srcs) > 1 and isinstance(op.srcs[1], Const) else None
    if mode not in ("", "lo"):
        name = op.op
    match name:
        case "mov" | "cvta" | "not" | "or" | "xor":
            wanted = [_of_type(bits, kind)] * len(op.srcs)
        case "add" | "sub" | "neg" | "mul" | "mad":
            wanted = [_of_type(_up_to(_of_type(bits, kind)), kind)] * len(op.srcs)
        case "and":
            own = _of_type(bits, kind)
            masks = [other.value if isinstance(other, Const) else ALL for other in reversed(op.srcs)]
            wanted = [_of_type(own & mask, kind) for mask in masks]
        case "shl" if amount is not None and 0 <= amount < width(kind):
            wanted = [_of_type(_of_type(bits, kind) >> amount, kind), 0]
        case "shr" if amount is not None and 0 <= amount < width(kind):
            wanted = [_of_type(_of_type(bits, kind) << amount, kind), 0]
        case "rem" if amount is not None and _log(amount) is not None:
            wanted = [_of_type((amount - 1) | SIGN, kind), 0]
        case "div" if amount is not None and (places := _log(amount)) is not None:
            whole = _of_type(bits, kind) << places
            wanted = [_of_type(whole if kind[0] != "s" else _up_to(whole) | SIGN, kind), 0]
        case "selp":
            wanted = [_of_type(bits, kind), _of_type(bits, kind), ALL]
        case "cvt":
            wanted = [_of_type(_of_type(bits, kind), op.src_type or kind)]
        case _:
            wanted = [ALL] * len(op.srcs)
    for source, some in zip(op.srcs, wanted, strict=True):
        _demand(source, some, asked)


def _of_type(bits: int, kind: str) -> int:
    """Bits of an unbounded integer as bits of a value of a type: all above its width are its sign, or 0."""
    size = width(kind)
    own = bits & ((1 << size) - 1)
    return own | 1 << (size - 1) if kind[0] == "s" and own != bits else own


def _up_to(bits: int) -> int:
    """All bits up to the highest given one: carries come from below."""
    return ALL if bits < 0 else (1 << bits.bit_length()) - 1


def _log(number: int) -> int | None:
    """The logarithm of a power of two, ``None`` for other numbers."""
    return number.bit_length() - 1 if number > 0 and not number & (number - 1) else None
