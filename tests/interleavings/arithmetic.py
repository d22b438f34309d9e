"""Values of expressions and of the local instructions that random programs use (9.7.1, 9.7.6, 9.7.8, 9.7.9)."""

from __future__ import annotations

import operator
from collections.abc import Callable

from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.ops import Alu
from tests.interleavings.state import NotCovered, Token, Unclear, Value

_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "&&": lambda a, b: a != 0 and b != 0, "||": lambda a, b: a != 0 or b != 0,
}  # fmt: skip
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_LOCAL: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul.lo": operator.mul, "min": min, "max": max,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


def size_of(type_name: str) -> int:
    """The bytes of a type."""
    bits = "".join(c for c in type_name if c.isdigit())
    if type_name == "pred" or not bits or "x" in type_name or type_name[0] not in "bus" or type_name.startswith("bf"):
        raise NotCovered(f"type {type_name}")
    return int(bits) // 8


def brought(type_name: str, value: int) -> int:
    """A value in the range of its type."""
    if type_name == "pred":
        return int(value != 0)
    bits = 8 * size_of(type_name)
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_name[0] == "s" and value >> (bits - 1) else value


def known(value: Value) -> int:
    """A value on which something depends."""
    if isinstance(value, Token):
        raise NotCovered("a state operand as a number")
    if value is None:
        raise Unclear
    return value


def evaluate(expr: Expr, registers: Callable[[str], Value]) -> Value:
    """The value of an expression; C's operators on integers without bound."""
    match expr:
        case Const(value):
            return value
        case Reg(name):
            return registers(name)
        case Unary(op, operand):
            a = evaluate(operand, registers)
            if a is None:
                return None
            a = known(a)
            return {"-": -a, "+": a, "~": ~a, "!": int(not a)}[op]
        case Binary(op, left, right):
            a, b = evaluate(left, registers), evaluate(right, registers)
            if a is None or b is None:
                return None
            a, b = known(a), known(b)
            if op in ("/", "%"):
                if b == 0:
                    raise Unclear
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                return quotient if op == "/" else a - b * quotient
            return int(_BINARY[op](a, b))
    raise NotCovered(f"expression {expr}")


def local(op: Alu, registers: Callable[[str], Value]) -> list[Value]:
    """What a local instruction gives, a value for each destination."""
    values = [evaluate(src, registers) for src in op.srcs]
    name, _, mode = op.op.partition(".")
    if op.op == "nop":
        return []
    if op.op in ("mov", "cvta"):
        return [brought(op.type, values[0]) if isinstance(values[0], int) else values[0]]
    if op.op == "selp":
        return [values[0] if known(values[2]) else values[1]]
    if any(v is None for v in values):
        return [None for _ in op.dsts]
    numbers = [known(v) for v in values]
    if name == "setp":
        if "." in mode or mode not in _COMPARE:
            raise NotCovered(op.op)
        holds = _COMPARE[mode](brought(op.type, numbers[0]), brought(op.type, numbers[1]))
        return [int(holds), int(not holds)][: len(op.dsts)]
    if op.op in _LOCAL:
        return [brought(op.type, _LOCAL[op.op](brought(op.type, numbers[0]), brought(op.type, numbers[1])))]
    if op.op == "not":
        return [brought(op.type, ~numbers[0] if op.type != "pred" else int(not numbers[0]))]
    if op.op == "neg":
        return [brought(op.type, -numbers[0])]
    if op.op == "shl":
        return [brought(op.type, numbers[0] << min(numbers[1], 64))]
    if op.op == "cvt":
        return [brought(op.type, brought(op.src_type or op.type, numbers[0]))]
    raise NotCovered(f"{op.op}.{op.type}")


def compares(op: str, a: int, b: int) -> bool:
    """Whether a comparison of conditions and of ``await`` holds."""
    return bool(_BINARY[op](a, b))


def combined(op: str, type_name: str, old: int, operands: list[int]) -> int:
    """What an atomic operation leaves (9.7.13.10)."""
    first = operands[0]
    match op:
        case "add" | "min" | "max" | "and" | "or" | "xor":
            return brought(type_name, _LOCAL[op](brought(type_name, old), brought(type_name, first)))
        case "exch":
            return brought(type_name, first)
        case "cas":
            return brought(type_name, operands[1]) if old == brought(type_name, first) else old
        case "inc":
            return 0 if old >= first else old + 1
        case "dec":
            return first if old == 0 or old > first else old - 1
    raise NotCovered(f"atomic {op}")
