"""Which bits of registers decide anything: of a counter that is only asked for its remainder by four, the last two.

What is asked of a result says what is asked of what it is computed from: of a sum the bits up to the highest one that
is asked for, of a shifted value the bits that come to stand there (PTX ISA 9.7.1, 9.7.8). Bits are those of the two's
complement of a number, without end: ``ALL`` are -1, and those of ``SIGN`` tell a negative number from others.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.ir import ops
from mcheck.ir.alu import width
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.liveness import effects
from mcheck.ir.ops import Op
from mcheck.ir.resolve import expressions

ALL = -1
SIGN = -1 << 64
"""No register has more bits."""

Asked = dict[str, int]
"""The bits of registers that are asked for."""


def deciding_bits(code: Iterable[Op], *, stores: bool) -> Asked:
    """The bits of registers that decide what a code does; unless ``stores``, what is stored decides nothing."""
    asked: Asked = {}
    computed: list[ops.Alu] = []
    for op in {id(op): op for op in code}.values():
        if op.guard is not None:
            _ask(op.guard.reg, ALL, asked)
        if isinstance(op, ops.Alu):
            computed.append(op)
            if op.op in ("div", "rem") and not (isinstance(op.srcs[1], Const) and op.srcs[1].value):
                _ask(op.srcs[1], ALL, asked)  # by zero there is no result
            continue
        used = effects(op)[1]
        for name, expr in expressions(op) if used else ():
            if stores or not (isinstance(op, ops.Store) and name == "srcs"):
                _ask(expr, ALL, asked)
    known: dict[int, int] = {}
    while True:
        before = dict(known)
        for op in computed:
            bits = 0
            for reg in op.dsts:
                bits |= asked.get(reg.name, 0) if reg is not None else 0
            if bits != known.get(id(op), 0):
                known[id(op)] = bits
                _ask_sources(op, bits, asked)
        if known == before:
            return asked


def _ask(expr: Expr, bits: int, asked: Asked) -> None:
    """Asks for bits of the value of an operand, in which numbers have no end."""
    match expr:
        case Reg(name):
            asked[name] = asked.get(name, 0) | bits
        case Unary("-" | "+", inner):
            _ask(inner, _up_to(bits), asked)
        case Unary("~", inner):
            _ask(inner, bits, asked)
        case Binary("+" | "-" | "*", left, right):
            _ask(left, _up_to(bits), asked)
            _ask(right, _up_to(bits), asked)
        case Binary("&", left, Const(mask)) | Binary("&", Const(mask), left):
            _ask(left, bits & mask, asked)
        case Binary("&" | "|" | "^", left, right):
            _ask(left, bits, asked)
            _ask(right, bits, asked)
        case Binary("<<", left, Const(places)) if places >= 0:
            _ask(left, bits >> places, asked)
        case Binary(">>", left, Const(places)) if places >= 0:
            _ask(left, bits << places, asked)
        case Binary("%", left, Const(by)) if _log(by) is not None:
            _ask(left, (by - 1) | SIGN, asked)
        case Binary("/", left, Const(by)) if (log := _log(by)) is not None:
            _ask(left, _up_to(bits << log) | SIGN, asked)
        case _:
            for name in registers_of(expr):
                asked[name] = ALL


def _ask_sources(op: ops.Alu, bits: int, asked: Asked) -> None:
    """Asks for what bits of the results of a computation come from."""
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
        _ask(source, some, asked)


def _of_type(bits: int, kind: str) -> int:
    """The bits that a value of a type has of some bits of the number: all above its own are its sign, or 0."""
    size = width(kind)
    own = bits & ((1 << size) - 1)
    return own | 1 << (size - 1) if kind[0] == "s" and own != bits else own


def _up_to(bits: int) -> int:
    """All bits up to the highest of some: carries come from below."""
    return ALL if bits < 0 else (1 << bits.bit_length()) - 1


def _log(number: int) -> int | None:
    """The power of two that a number is."""
    return number.bit_length() - 1 if number > 0 and not number & (number - 1) else None
