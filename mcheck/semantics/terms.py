"""Values that a thread computes before it is known what its reads return.

A term is an ``int`` (known) or a tuple whose first item names its shape:

* ``("e", uid)``: what event ``uid`` returned: the raw bits of a read, the predicate of an mbarrier wait, the state of
  an arrive;
* ``("?", key)``: an unknown constant (initial contents of shared memory, an uninitialised register);
* ``("alu", op, type, src_type, args, k)``: result ``k`` of an ALU operation;
* ``("x", op, a, b)`` and ``("u", op, a)``: an operand expression, on unbounded integers;
* ``("typed", type, a)``: raw bits read as a PTX type; ``("raw", size, a)``: a value cut to ``size`` bytes;
* ``("cat", ((a, size), …))``: bytes joined, the first lowest; ``("slice", a, offset, size)``: some bytes of ``a``;
* ``("rmw", op, type, old, operands)``: what an atomic or a reduction writes, as raw bits;
* ``("map", field, old, value, ordinal)``: a tensor map's 128 bytes with one field replaced.

Terms are folded as soon as their arguments are known.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from mcheck.ir.alu import compute, has_value
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary, apply_binary, apply_unary
from mcheck.ir.type_sizes import type_size

Uid = tuple[int, int]
"""(thread index, position in the thread's path); thread -1 is the initial memory."""

Term = int | tuple  # type: ignore[type-arg]


class Unknown(Exception):
    """The value depends on an unknown constant, or on a division by zero."""


@lru_cache(maxsize=256)
def is_integer(type_name: str) -> bool:
    """Integers and untyped bits, but not bf16."""
    return type_name[0] in "usb" and not type_name.startswith("bf")


def typed(type_name: str, raw: Term) -> Term:
    """Raw bits as a value of the type: signed types are negative above their maximum."""
    if isinstance(raw, int):
        if type_name[0] == "s":
            bits = type_size(type_name) * 8
            raw &= (1 << bits) - 1
            return raw - (1 << bits) if raw >> (bits - 1) else raw
        return raw
    return ("typed", type_name, raw) if type_name[0] == "s" else raw


def raw(size: int, value: Term) -> Term:
    """A value cut to ``size`` bytes, as an unsigned integer."""
    if isinstance(value, int):
        return value & ((1 << (8 * size)) - 1)
    return ("raw", size, value)


def slice_bytes(value: Term, offset: int, size: int, whole: int) -> Term:
    """Bytes ``offset`` to ``offset + size`` of a value of ``whole`` bytes."""
    if isinstance(value, int):
        return (value >> (8 * offset)) & ((1 << (8 * size)) - 1)
    if offset == 0 and size == whole:
        return value
    if value[0] == "cat":
        start = 0
        for part, length in value[1]:
            if (start, length) == (offset, size):
                return part  # type: ignore[no-any-return]
            start += length
    return ("slice", value, offset, size)


def join(parts: tuple[tuple[Term, int], ...]) -> Term:
    """The parts joined, the first one lowest."""
    if len(parts) == 1:
        return parts[0][0]
    if all(isinstance(a, int) for a, _ in parts):
        result = shift = 0
        for a, size in parts:
            result |= a << shift  # type: ignore[operator]
            shift += 8 * size
        return result
    return ("cat", parts)


def alu(op: str, type_name: str, src_type: str | None, args: tuple[Term, ...], results: int) -> tuple[Term, ...]:
    """The results of an ALU operation."""
    if all(isinstance(a, int) for a in args) and has_value(op, type_name, args):  # type: ignore[arg-type]
        return compute(op, type_name, src_type, args, results)  # type: ignore[arg-type]
    if op == "pack":
        size = type_size(type_name) // len(args)
        return (join(tuple((raw(size, a), size) for a in args)),)
    if op == "unpack":
        size = type_size(type_name) // results
        return tuple(slice_bytes(args[0], k * size, size, type_size(type_name)) for k in range(results))
    found: list[Term] = [("alu", op, type_name, src_type, args, k) for k in range(results)]
    if op.startswith("setp.") and len(args) == 3 and isinstance(args[0], int) and isinstance(args[1], int):
        ways = (compute(op, type_name, src_type, (args[0], args[1], third), results) for third in (0, 1))
        for k, (without, with_) in enumerate(list(zip(*ways, strict=True))[:results]):
            if without == with_:  # a comparison that decides: of a loop that counts its tries, say
                found[k] = without
    return tuple(found)


def expression(expr: Expr, registers: dict[str, Term]) -> Term:
    """The term of an operand expression in a thread's registers."""
    match expr:
        case Const(value):
            return value
        case Reg(name):
            return registers[name]
        case Unary(op, a):
            x = expression(a, registers)
            return apply_unary(op, x) if isinstance(x, int) else ("u", op, x)
        case Binary(op, a, b):
            x, y = expression(a, registers), expression(b, registers)
            if isinstance(x, int) and isinstance(y, int) and _has_value(op, y):
                return apply_binary(op, x, y)
            return ("x", op, x, y)
    raise TypeError(f"unresolved operand {expr!r}")


MAX_SHIFT = 1024


def _has_value(op: str, b: int) -> bool:
    """Division by zero and shifts by less than nothing, or by more than any type has bits, give no known value."""
    if op in ("/", "%"):
        return b != 0
    return op not in ("<<", ">>") or 0 <= b <= MAX_SHIFT


def _operate(op: str, a: Term, b: Term, value: Callable[[Term], int]) -> int:
    """An operator of expressions; ``&&`` and ``||`` look at their right side only where the left does not decide."""
    x = value(a)
    if op in ("&&", "||") and bool(x) is (op == "||"):
        return int(bool(x))
    y = value(b)
    if not _has_value(op, y):
        raise Unknown
    return apply_binary(op, x, y)


def rmw(op: str, type_name: str, old: Term, operands: tuple[Term, ...]) -> Term:
    """What an atomic of ``op`` writes, as raw bits of its type, ``op`` being what ``scalar_kind`` says."""
    size = type_size(type_name)
    if op == "exch":
        return raw(size, operands[0])
    if isinstance(old, int) and all(isinstance(a, int) for a in operands):
        with suppress(Unknown):
            return _rmw(op, type_name, old, operands)  # type: ignore[arg-type]
    return ("rmw", op, type_name, old, operands)


def _rmw(op: str, type_name: str, old: int, operands: tuple[int, ...]) -> int:
    from mcheck.semantics.reductions import reduce

    size = type_size(type_name)
    mask = (1 << (8 * size)) - 1
    if op == "cas":
        return operands[1] & mask if old == operands[0] & mask else old
    if op in ("add", "sub", "mul", "and", "or", "xor", "div") and is_integer(type_name):
        a, b = typed(type_name, old), typed(type_name, operands[0] & mask)
        assert isinstance(a, int) and isinstance(b, int)
        symbol = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "div": "/"}[op]
        if not _has_value(symbol, b):
            raise Unknown
        return apply_binary(symbol, a, b) & mask
    kind, _, subnormal = op.partition(".")
    return reduce(kind, type_name, old, operands[0] & mask, flush_subnormals=not subnormal)


def scalar_kind(op: str, type_name: str, space: str) -> str:
    """The operation of an ``atom`` or ``red`` on an object in ``space``: an f32 in shared memory keeps subnormal
    numbers, one in global memory flushes them (9.7.13.5)."""
    return "add.subnormal" if (op, type_name, space) == ("add", "f32", "shared") else op


def reads_of(term: Term) -> frozenset[Uid]:
    """The events whose results the term depends on."""
    found: set[Uid] = set()
    _collect(term, found)
    return frozenset(found)


def depends_on_unknown(term: Term) -> bool:
    """Whether an unknown constant is part of the term."""
    if isinstance(term, int):
        return False
    return term[0] == "?" or any(
        depends_on_unknown(part) if part and isinstance(part[0], str) else any(_unknown_item(item) for item in part)
        for part in term[1:]
        if isinstance(part, tuple) and term[0] != "e"
    )


def _unknown_item(item: object) -> bool:
    """An operand, or an operand with its size."""
    if not isinstance(item, tuple) or not item:
        return False
    return depends_on_unknown(item if isinstance(item[0], str) else item[0])


def _collect(term: Term, found: set[Uid]) -> None:
    if isinstance(term, int):
        return
    if term[0] == "e":
        found.add(term[1])
        return
    if term[0] == "?":
        return
    for part in term[1:]:
        if isinstance(part, tuple):
            if part and isinstance(part[0], str):
                _collect(part, found)
            else:
                for item in part:
                    if isinstance(item, tuple):
                        if item and isinstance(item[0], str):
                            _collect(item, found)
                        elif item:
                            _collect(item[0], found)


def evaluate(term: Term, value_of: Callable[[Uid], int], part_of: Callable[[Term, int, int], int] | None = None) -> int:
    """The value of a term once every event has one; raises ``Unknown`` if it depends on what nobody knows.

    ``part_of`` gives some bytes (offset, size) of a term, where the rest of it may be unknown.
    """
    if isinstance(term, int):
        return term
    kind = term[0]
    if kind == "e":
        return value_of(term[1])
    if kind == "?":
        raise Unknown
    if kind == "typed":
        result = typed(term[1], evaluate(term[2], value_of, part_of))
    elif kind == "raw":
        result = raw(term[1], evaluate(term[2], value_of, part_of))
    elif kind == "x":
        result = _operate(term[1], term[2], term[3], lambda t: evaluate(t, value_of, part_of))
    elif kind == "u":
        result = apply_unary(term[1], evaluate(term[2], value_of, part_of))
    elif kind == "alu":
        _, op, type_name, src_type, args, k = term
        values = tuple(evaluate(a, value_of, part_of) for a in args)
        if not has_value(op, type_name, values):
            raise Unknown
        result = compute(op, type_name, src_type, values)[k]
    elif kind == "rmw":
        _, op, type_name, old, operands = term
        result = _rmw(
            op, type_name, evaluate(old, value_of, part_of), tuple(evaluate(a, value_of, part_of) for a in operands)
        )
    elif kind == "cat":
        result = join(tuple((evaluate(a, value_of, part_of), size) for a, size in term[1]))
    elif kind == "slice" and part_of is not None:
        result = part_of(term[1], term[2], term[3])
    elif kind == "slice":
        result = slice_bytes(evaluate(term[1], value_of, part_of), term[2], term[3], -1)
    elif kind == "map":
        from mcheck.semantics.tensor_map_values import replace_map_field

        result = replace_map_field(
            term[1], evaluate(term[2], value_of, part_of), evaluate(term[3], value_of, part_of), term[4]
        )
    else:
        raise TypeError(kind)
    assert isinstance(result, int)
    return result
