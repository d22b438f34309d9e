"""The parser of PTX variables and initialisers (PTX ISA 5.1, 5.2, 5.4)."""

from __future__ import annotations

import struct

from mcheck.base.errors import Span
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.expressions import parse_constant, parse_expression
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.lexer import NAME, NUMBER, Tokens, integer
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.tensormaps import MapFields, parse_tensor_map
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import CELL, TENSOR_LANES, MemObject

SIZES: dict[str, int] = {
    "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
    "tensormap": 128,
}  # fmt: skip
REGISTER_TYPES = frozenset(SIZES) - {"tensormap"} | {"pred"}
SPACES = ("global", "shared", "const", "param")
LINKAGE = ("visible", "extern", "weak", "common")
EARLIER = {"written": "writes", "read": "reads"}
MAX_BYTES = 256 << 20
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def parse_variables(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """Parse ``.space {.align N} {.vN} .type name[dims] = init, …``."""
    while tokens.kind == NAME and tokens.text[1:] in LINKAGE:
        tokens.at += 1
    at = tokens.at
    words = tokens.text.split(".")[1:]
    space = words[0] if words else ""
    if tokens.kind != NAME or tokens.text[0] != "." or space.removesuffix("::cta") not in (*SPACES, "tensor"):
        if tokens.kind == NAME and tokens.text[0] == ".":
            raise problem(
                "LIT023", tokens.span(), found=f"'.{space}'", expected="one of .global, .shared, .const, .param",
                hint=None if space == "local" else suggest(space, SPACES),
            )  # fmt: skip
        raise tokens.unexpected("a state space such as .global")
    space = space.removesuffix("::cta")
    tokens.at += 1
    words = words[1:]
    align: int | None = None
    lanes = 1
    kind: str | None = None
    while kind is None:
        if words:
            word, here = words.pop(0), at
        else:
            here = tokens.at
            if tokens.kind != NAME or tokens.text[0] != ".":
                raise tokens.unexpected("a type such as .u32")
            words, at = tokens.text[1:].split("."), here
            tokens.at += 1
            continue
        if word == "align":
            first = tokens.at
            align = parse_constant(tokens, scope, "an alignment")
            if not (0 < align <= 4096 and align & (align - 1) == 0):
                raise problem("LIT024", tokens.span_since(first))
        elif word in ("v2", "v4", "v8"):
            lanes = int(word[1:])
        elif word in SIZES:
            kind = word
        else:
            hint = suggest("." + word, ["." + size for size in SIZES])
            raise problem(
                "LIT022", tokens.span(here), found=f"'.{word}'", expected="a type such as .b8 or .u32", hint=hint
            )
    while True:
        _variable(tokens, scope, initial, space, align, kind, lanes)
        if not tokens.accept(","):
            return


def _variable(
    tokens: Tokens, scope: Scope, initial: Initial, space: str, align: int | None, kind: str, lanes: int
) -> None:
    at = tokens.at
    name = tokens.name("the name of a variable")
    span = tokens.span(at)
    dims = _dimensions(tokens, scope, at)
    unsized = dims[:1] == [0]
    if lanes > 1:
        dims.append(lanes)
    if space == "tensor" and (SIZES[kind] != CELL or len(dims) < 2 or dims[-2] != TENSOR_LANES):
        expected = f"an array [{TENSOR_LANES}][columns] of a type of 32 bits, perhaps several"
        raise problem("LIT025", tokens.span_since(at), size="another shape", expected=expected)
    values: list[tuple[int, Expr, Span]] | None = None
    maps: list[MapFields] = []
    if tokens.text == "=":
        equals = tokens.at
        tokens.at += 1
        if space in ("shared", "tensor"):
            raise problem("LIT027", tokens.span(equals), space=f".{space}", hint="store the initial value in a thread")
        if kind == "tensormap":
            maps = _maps(tokens, scope, dims, name)
            if unsized:
                dims[0] = len(maps)
        else:
            values, outer = _initialiser(tokens, scope, tuple(dims), kind, name)
            if unsized:
                dims[0] = outer
    if unsized and dims[0] == 0:
        raise problem("LIT025", span, size="[]", expected="a size, or an initialiser that gives it")
    earlier = _earlier_grid(tokens) if space == "global" else None
    elem_size = SIZES[kind]
    size = elem_size
    for dim in dims:
        size *= dim
    initial.size += size
    if initial.size > MAX_BYTES:
        what, total = (f"{name} is", size) if size > MAX_BYTES else ("the variables are", initial.size)
        raise problem("LIT026", span, what=what, size=total, limit=MAX_BYTES)
    natural = elem_size * lanes if kind != "tensormap" else 64
    if kind == "tensormap":
        align = max(align or 64, 64)
    content = None if space in ("shared", "tensor") or maps else bytes(size)
    if values is not None and content is not None:
        content = _content(values, size, elem_size, kind, name, initial)
    item = MemObject(
        name=name, space=space, elem=kind, elem_size=elem_size, dims=tuple(dims),
        align=natural if align is None else align, size=size, init=content, span=span,
        earlier_grid=earlier,
    )  # fmt: skip
    scope.declare_object(item, span)
    if maps:
        initial.maps[name] = maps


def _dimensions(tokens: Tokens, scope: Scope, at: int) -> list[int]:
    """Parse the sizes of an array; the first one is 0 if an initialiser is to give it."""
    dims: list[int] = []
    while tokens.accept("["):
        if tokens.text == "]" and not dims:
            dims.append(0)
        else:
            first, word = tokens.at, tokens.text
            size = parse_constant(tokens, scope, "the size of an array")
            if size <= 0:
                written = tokens.at == first + 1 and word.isdecimal()
                hint = None if written else "a constant that is 'any' can be 0: write [N + 1]"
                raise problem("LIT025", tokens.span_since(first), size=size, expected="a positive number", hint=hint)
            dims.append(size)
        tokens.expect("]")
        if len(dims) > 16:
            raise problem("LIT025", tokens.span_since(at), size="more than 16 dimensions")
    return dims


def _earlier_grid(tokens: Tokens) -> str | None:
    """Parse ``written by earlier grid`` or ``read by earlier grid``."""
    if tokens.text not in EARLIER:
        return None
    does = EARLIER[tokens.text]
    tokens.at += 1
    for word in ("by", "earlier", "grid"):
        tokens.expect(word)
    return does


def _maps(tokens: Tokens, scope: Scope, dims: list[int], name: str) -> list[MapFields]:
    if not dims:
        return [parse_tensor_map(tokens, scope)]
    start = tokens.at
    found: list[MapFields] = []

    def nest(depth: int) -> None:
        tokens.expect("{")
        count = 0
        while tokens.text != "}":
            if depth + 1 == len(dims):
                found.append(parse_tensor_map(tokens, scope))
            else:
                nest(depth + 1)
            count += 1
            if not tokens.accept(","):
                break
        tokens.expect("}", "',' or '}'")
        if dims[depth] and count != dims[depth]:
            raise problem("LIT028", tokens.span(start), name=name, expected=f"{dims[depth]} tensor maps")

    nest(0)
    return found


def _initialiser(
    tokens: Tokens, scope: Scope, dims: tuple[int, ...], kind: str, name: str
) -> tuple[list[tuple[int, Expr, Span]], int]:
    """Parse the values, each with its index in memory order; returns the length of the outermost list, too."""
    if not dims:
        return [(0, *_value(tokens, scope, kind))], 0
    strides = [1]
    for dim in reversed(dims[1:]):
        strides.insert(0, strides[0] * dim)
    found: list[tuple[int, Expr, Span]] = []

    def nest(depth: int, index: int) -> int:
        start = tokens.at
        tokens.expect("{", "a list in braces")
        count = 0
        while tokens.text != "}":
            if dims[depth] and count == dims[depth]:
                raise problem("LIT028", tokens.span(), name=name, expected=f"at most {dims[depth]} elements")
            if depth + 1 == len(dims):
                found.append((index + count, *_value(tokens, scope, kind)))
            elif tokens.text == "{":
                nest(depth + 1, index + count * strides[depth])
            else:
                raise problem("LIT028", tokens.span(start), name=name, expected="a list in braces for every dimension")
            count += 1
            if not tokens.accept(","):
                break
        tokens.expect("}", "',' or '}'")
        return count

    outer = nest(0, 0)
    return found, outer


def _value(tokens: Tokens, scope: Scope, kind: str) -> tuple[Expr, Span]:
    at = tokens.at
    sign = tokens.text if tokens.text in ("-", "+") else ""
    here = at + (1 if sign else 0)
    text = tokens.texts[here]
    decimal = tokens.kinds[here] == NUMBER and text[:2].lower() not in ("0f", "0d", "0x")
    if decimal and ("." in text or ((kind in _FLOATS or kind == "bf16") and integer(text) is not None)):
        bits = _float_bits(sign + text, kind)
        tokens.at = here + 1
        span = tokens.span_since(at)
        if bits is None:
            raise problem("LIT029", span, value=sign + text, type="." + kind)
        return Const(bits), span
    expr = parse_expression(tokens, scope)
    return expr, tokens.span_since(at)


def _float_bits(text: str, kind: str) -> int | None:
    """The bits of decimal number ``text`` in floating-point type ``kind``."""
    try:
        if kind == "bf16":
            bits = int.from_bytes(struct.pack("<f", float(text)), "little")
            return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return int.from_bytes(struct.pack(_FLOATS[kind], float(text)), "little")
    except (KeyError, OverflowError, ValueError):
        return None


def _content(
    values: list[tuple[int, Expr, Span]], size: int, elem_size: int, kind: str, name: str, initial: Initial
) -> bytes:
    content = bytearray(size)
    bits = 8 * elem_size
    for index, value, span in values:
        if isinstance(value, Const):
            if not -(1 << bits - 1) <= value.value < 1 << bits:
                raise problem("LIT029", span, value=value.value, type="." + kind)
            content[index * elem_size : (index + 1) * elem_size] = (value.value & (1 << bits) - 1).to_bytes(
                elem_size, "little"
            )
        else:
            initial.pointers.setdefault(name, []).append((index * elem_size, elem_size, kind, value, span))
    return bytes(content)
