"""Literals and constant expressions (PTX ISA 4.5): 64-bit integers, and floats as their bits."""

from __future__ import annotations

import re
import struct

from mcheck.frontend.ptx.cursor import DIRECTIVE, NAME, NUMBER, Cursor
from mcheck.frontend.ptx.module import Immediate
from mcheck.frontend.ptx.problems import problem
from mcheck.ir.expr import apply_binary, apply_unary

WARP_SIZE = 32
_MAX_DEPTH = 64
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_BINDS = {op: level for level, ops in enumerate(_LEVELS) for op in ops}
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?", re.ASCII)
_SIGN = {"f32": 1 << 31, "f64": 1 << 63}


def parse_literal(cursor: Cursor) -> Immediate:
    """Parse a number: decimal, ``0x``, octal or ``0b``, optionally with ``U``; ``0f`` or ``0d`` with the bits;
    ``1.5``.
    """
    text = cursor.text
    if cursor.kind != NUMBER:
        raise cursor.unexpected("a number")
    if (match := _INTEGER.fullmatch(text)) is not None:
        digits = match[1]
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 8 if digits[0] == "0" else 10)
        value = int(digits[2:] if base in (16, 2) else digits, base) if len(digits) <= 80 else 1 << 64
        if value >> 64:
            raise problem("PTX012", cursor.span(), found=text if len(text) <= 40 else "this number")
        cursor.advance()
        return Immediate(value)
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        cursor.advance()
        return Immediate(_bits(text), "f32")
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        cursor.advance()
        return Immediate(_bits(text), "f64")
    if re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        cursor.advance()
        return _double(float(text))
    raise problem("PTX011", cursor.span(), found=f"'{text}'", expected="such as 42, 0x2A, 052, 0b101, 0f3F800000, 1.5")


def _bits(text: str) -> int:
    """The integer of the digits of ``0f3F800000``."""
    return int("0x" + text[2:], 16)


def _double(value: float) -> Immediate:
    return Immediate(struct.unpack("<Q", struct.pack("<d", value))[0], "f64")


def _float(value: Immediate) -> float:
    if value.kind == "int":
        return float(value.value)
    form = ("<I", "<f") if value.kind == "f32" else ("<Q", "<d")
    return float(struct.unpack(form[1], struct.pack(form[0], value.value))[0])


def parse_constant(cursor: Cursor, depth: int = 0) -> Immediate:
    """Parse a constant expression."""
    condition = _binary(cursor, 0, depth)
    if not cursor.accept("?"):
        return condition
    first = parse_constant(cursor, depth + 1)
    cursor.expect(":")
    second = parse_constant(cursor, depth + 1)
    return first if condition.value else second


def _binary(cursor: Cursor, least: int, depth: int) -> Immediate:
    left = _unary(cursor, depth)
    while (level := _BINDS.get(cursor.text, -1)) >= least:
        op, span = cursor.text, cursor.span()
        cursor.advance()
        right = _binary(cursor, level + 1, depth + 1)
        try:
            left = _apply(op, left, right)
        except (ZeroDivisionError, OverflowError):
            raise problem("PTX013", span, reason="division by zero" if op in "/%" else "overflow") from None
    return left


def _apply(op: str, left: Immediate, right: Immediate) -> Immediate:
    a, b = left.value, right.value
    if left.kind != "int" or right.kind != "int":
        return _floating(op, _float(left), _float(right))
    if op in ("<<", ">>"):
        b = b if 0 <= b < 64 else 64
    return Immediate(_wrap(apply_binary(op, a, b)))


def _floating(op: str, a: float, b: float) -> Immediate:
    match op:
        case "+":
            return _double(a + b)
        case "-":
            return _double(a - b)
        case "*":
            return _double(a * b)
        case "/":
            return _double(a / b)
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            known = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
            return Immediate(int(known[op]))
    raise OverflowError


def _wrap(value: int) -> int:
    return value if -(1 << 63) <= value < 1 << 64 else value % (1 << 64)


def _unary(cursor: Cursor, depth: int) -> Immediate:
    if depth > _MAX_DEPTH:
        raise problem("PTX014", cursor.span(), expected=f"at most {_MAX_DEPTH} levels")
    text = cursor.text
    if text in ("-", "+", "~", "!"):
        cursor.advance()
        operand = _unary(cursor, depth + 1)
        if operand.kind == "int":
            return Immediate(_wrap(apply_unary(text, operand.value)))
        return Immediate(operand.value ^ _SIGN[operand.kind], operand.kind) if text == "-" else operand
    if text == "(":
        cursor.advance()
        if cursor.kind == DIRECTIVE:
            cast = cursor.text
            if cast not in (".s64", ".u64"):
                raise cursor.unexpected(".s64 or .u64")
            cursor.advance()
            cursor.expect(")")
            value = _unary(cursor, depth + 1).value % (1 << 64)
            return Immediate(value - (1 << 64) if cast == ".s64" and value >> 63 else value)
        inner = parse_constant(cursor, depth + 1)
        cursor.expect(")")
        return inner
    if cursor.kind == NAME and text == "WARP_SZ":
        cursor.advance()
        return Immediate(WARP_SIZE)
    return parse_literal(cursor)
