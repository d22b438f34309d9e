"""The init block: PTX variable declarations (PTX ISA 5.1, 5.4), the dialect's own forms, and initial registers.

The dialect's forms: ``x = 5``, ``x = y`` and ``x = &y`` (a copy of y's initial value), ``P0:r1 = 5``, ``P0:r1 = x``
(a pointer), ``y @ surface aliases x``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from mcheck.errors import Span
from mcheck.program.expr import Const, Expr
from mcheck.program.memory import MemObject
from mcheck.syntax.codes import did_you_mean, problem
from mcheck.syntax.expressions import constant, expression
from mcheck.syntax.lexer import NAME, NUMBER, Tokens, integer
from mcheck.syntax.scope import Scope
from mcheck.syntax.tensormaps import MapFields, tensor_map

SIZES: dict[str, int] = {
    "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
    "tensormap": 128,
}  # fmt: skip
REGISTER_TYPES = frozenset(SIZES) - {"tensormap"} | {"pred"}
SPACES = ("global", "shared", "const", "param")
PROXIES = ("generic", "texture", "surface", "constant")
LINKAGE = ("visible", "extern", "weak", "common")
MAX_BYTES = 256 << 20
MAX_REGISTERS = 100_000
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


@dataclass(frozen=True, slots=True)
class RegisterInit:
    """``P0:r1 = 5``: ``number`` is ``None`` if the whole role is meant."""

    thread: str
    number: int | None
    register: str
    value: Expr
    span: Span


@dataclass(slots=True)
class Initial:
    """What can only be filled in once addresses are known: pointers in initialisers, tensor maps."""

    pointers: dict[str, list[tuple[int, int, str, Expr, Span]]] = field(default_factory=dict)
    maps: dict[str, list[MapFields]] = field(default_factory=dict)
    registers: list[RegisterInit] = field(default_factory=list)
    warnings: list[tuple[str, Span | None]] = field(default_factory=list)


def init_block(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """Parses the declarations between the braces, the opening one taken already, the closing one included."""
    while not tokens.accept("}"):
        if tokens.accept(";"):
            continue
        declaration(tokens, scope, initial)
        if tokens.text != "}":
            tokens.expect(";", "';' or '}'")


def declaration(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """Parses one declaration, without its semicolon."""
    text = tokens.text
    if tokens.kind == NAME and text[0] == ".":
        if text == ".reg":
            registers(tokens, scope)
        else:
            variables(tokens, scope, initial)
        return
    if text == "const":
        constants(tokens, scope)
        return
    if text == "[":
        tokens.at += 1
        name = tokens.name("a location")
        tokens.expect("]")
        _location(tokens, scope, name, tokens.at - 2)
        return
    if tokens.kind == NUMBER or tokens.texts[tokens.at + 1] == ":" or _is_role_register(tokens):
        _initial_register(tokens, scope, initial)
        return
    at = tokens.at
    name = tokens.name("a declaration such as 'x = 0' or '.global .u32 x'")
    if tokens.text == "@":
        _alias(tokens, scope, name, at)
        return
    _location(tokens, scope, name, at, initial)


def _is_role_register(tokens: Tokens) -> bool:
    """Whether ``role[i]:`` comes next."""
    if tokens.texts[tokens.at + 1] != "[":
        return False
    at = tokens.at + 2
    while tokens.texts[at] not in ("]", ";", "}", ""):
        at += 1
    return tokens.texts[at] == "]" and tokens.texts[at + 1] == ":"


def constants(tokens: Tokens, scope: Scope) -> None:
    """``const A = 1, B = 2 * A`` at the top of a file."""
    tokens.expect("const")
    while True:
        at = tokens.at
        name = tokens.name("the name of a constant")
        tokens.expect("=")
        value = constant(tokens, scope, "the value of a const at file level")
        scope.declare_constant(name, value, tokens.span(at))
        if not tokens.accept(","):
            return


# --- registers ----------------------------------------------------------------------------------


def registers(tokens: Tokens, scope: Scope) -> None:
    """``.reg .u32 a, b`` and ``.reg .pred %p<4>`` (PTX ISA 5.2 and 5.4.6)."""
    tokens.expect(".reg")
    kind = tokens.text[1:]
    if tokens.kind != NAME or tokens.text[0] != "." or kind not in REGISTER_TYPES:
        if tokens.kind == NAME and tokens.text[0] == ".":
            raise problem(
                "LIT022", tokens.span(), found=f"'{tokens.text}'", expected="a register type such as .u32 or .pred",
                hint=did_you_mean(kind, REGISTER_TYPES),
            )  # fmt: skip
        raise tokens.unexpected("a type such as .u32")
    tokens.at += 1
    while True:
        tokens.accept("%")
        at = tokens.at
        name = tokens.name("the name of a register")
        if tokens.accept("<"):
            first = tokens.at
            count = _count(tokens)
            if not 0 < count <= MAX_REGISTERS:
                raise problem("LIT025", tokens.span(first), size=count, expected=f"1 to {MAX_REGISTERS} registers")
            tokens.expect(">")
            for number in range(count):
                scope.declare_register(f"{name}{number}", kind, tokens.span(at))
        else:
            scope.declare_register(name, kind, tokens.span(at))
        if not tokens.accept(","):
            return


def _count(tokens: Tokens) -> int:
    value = integer(tokens.text) if tokens.kind == NUMBER else None
    if value is None:
        raise tokens.unexpected("a number of registers")
    tokens.at += 1
    return value


def _initial_register(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    at = tokens.at
    number: int | None = None
    if tokens.kind == NUMBER:
        value = integer(tokens.text)
        if value is None:
            raise tokens.unexpected("a thread or a location")
        thread = f"P{value}"
        tokens.at += 1
    else:
        thread = tokens.name("a thread")
        if tokens.accept("["):
            number = constant(tokens, scope, "the number of a thread")
            tokens.expect("]")
    span = tokens.span_since(at)
    tokens.expect(":")
    tokens.accept("%")
    register = tokens.name("a register")
    tokens.expect("=")
    tokens.accept("&")
    initial.registers.append(RegisterInit(thread, number, register, expression(tokens, scope), span))


# --- the dialect's locations -----------------------------------------------------------------------


def location(name: str, value: int, span: Span | None) -> MemObject:
    """A location of the table dialect: 32 bits of global memory."""
    return MemObject(
        name=name, space="global", elem="s32", elem_size=4, align=4, size=4,
        init=(value & 0xFFFFFFFF).to_bytes(4, "little"), dialect=True, span=span,
    )  # fmt: skip


def _location(tokens: Tokens, scope: Scope, name: str, at: int, initial: Initial | None = None) -> None:
    span = tokens.span(at)
    value = 0
    if tokens.accept("="):
        copied = tokens.accept("&")
        first = tokens.at
        source = scope.objects.get(tokens.text) if tokens.kind == NAME else None
        if source is not None and tokens.texts[first + 1] in (";", "}"):
            tokens.at += 1
            value = int.from_bytes((source.init or b"")[:4], "little")
        elif copied or (tokens.kind == NAME and scope.implicit is not None and not scope.declares(tokens.text)):
            copy = tokens.name("a location")
            if scope.implicit is None:
                raise problem("LIT018", tokens.span(first), name=copy, hint=did_you_mean(copy, scope.objects))
            scope.implicit.setdefault(copy, tokens.span(first))
        else:
            value = constant(tokens, scope, "an initial value")
            if not -(1 << 31) <= value < 1 << 32:
                raise problem("LIT029", tokens.span_since(first), value=value, type="32 bits")
    item = location(name, value, span)
    old = scope.objects.get(name)
    if old is not None and old.dialect and old.alias_of is None and scope.implicit is not None:
        # The peers take a location that is initialised twice; the last value counts.
        if initial is not None and old.init != item.init:
            initial.warnings.append((f"{name} is initialised twice; the last value counts", span))
        scope.objects[name] = item
        return
    scope.declare_object(item, span)


def _alias(tokens: Tokens, scope: Scope, name: str, at: int) -> None:
    """``name @ proxy aliases target``."""
    tokens.expect("@")
    proxy = tokens.text
    if proxy not in PROXIES:
        if tokens.kind != NAME:
            raise tokens.unexpected("a proxy: " + ", ".join(PROXIES))
        raise problem(
            "LIT031", tokens.span(), found=f"'{proxy}'", expected="one of " + ", ".join(PROXIES),
            hint=did_you_mean(proxy, PROXIES),
        )  # fmt: skip
    tokens.at += 1
    tokens.expect("aliases")
    target_at = tokens.at
    target = tokens.name("the location that is aliased")
    item = scope.objects.get(target)
    if item is None:
        hint = did_you_mean(target, scope.objects)
        raise problem("LIT030", tokens.span(target_at), name=target, expected="a location declared above", hint=hint)
    span = tokens.span(at)
    scope.declare_object(replace(item, name=name, alias_of=target, alias_proxy=proxy, span=span), span)


# --- PTX variables -----------------------------------------------------------------------------------


def variables(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """``.space {.align N} {.vN} .type name[dims] = init, …``."""
    while tokens.kind == NAME and tokens.text[1:] in LINKAGE:
        tokens.at += 1
    at = tokens.at
    words = tokens.text.split(".")[1:]
    space = words[0] if words else ""
    if tokens.kind != NAME or tokens.text[0] != "." or space.removesuffix("::cta") not in SPACES:
        if tokens.kind == NAME and tokens.text[0] == ".":
            raise problem(
                "LIT023", tokens.span(), found=f"'.{space}'", expected="one of .global, .shared, .const, .param",
                hint=None if space == "local" else did_you_mean(space, SPACES),
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
            words = tokens.text[1:].split(".")
            tokens.at += 1
            continue
        if word == "align":
            first = tokens.at
            align = constant(tokens, scope, "an alignment")
            if not (0 < align <= 4096 and align & (align - 1) == 0):
                raise problem("LIT024", tokens.span_since(first))
        elif word in ("v2", "v4", "v8"):
            lanes = int(word[1:])
        elif word in SIZES:
            kind = word
        else:
            hint = did_you_mean("." + word, ["." + size for size in SIZES])
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
    unsized = False
    dims: list[int] = []
    while tokens.accept("["):
        if tokens.text == "]" and not dims:
            unsized = True
            dims.append(0)
        else:
            first = tokens.at
            size = constant(tokens, scope, "the size of an array")
            if size <= 0:
                raise problem("LIT025", tokens.span_since(first), size=size, expected="a positive number")
            dims.append(size)
        tokens.expect("]")
        if len(dims) > 16:
            raise problem("LIT025", tokens.span_since(at), size="more than 16 dimensions")
    if lanes > 1:
        dims.append(lanes)
    values: list[tuple[Expr, Span]] | None = None
    maps: list[MapFields] = []
    if tokens.text == "=":
        equals = tokens.at
        tokens.at += 1
        if space == "shared":
            raise problem("LIT027", tokens.span(equals), space=".shared", hint="store its first value in a thread")
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
    elem_size = SIZES[kind]
    size = elem_size
    for dim in dims:
        size *= dim
    total = size + sum(item.size for item in scope.objects.values())
    if total > MAX_BYTES:
        what = f"{name} is" if size > MAX_BYTES else "the variables are"
        raise problem("LIT026", span, what=what, size=size if size > MAX_BYTES else total, limit=MAX_BYTES)
    natural = elem_size * lanes if kind != "tensormap" else 64
    if kind == "tensormap":
        align = max(align or 64, 64)
    content = None if space == "shared" or maps else bytes(size)
    if values is not None and content is not None:
        content = _content(values, size, elem_size, kind, name, initial)
    item = MemObject(
        name=name, space=space, elem=kind, elem_size=elem_size, dims=tuple(dims),
        align=natural if align is None else align, size=size, init=content, span=span,
    )  # fmt: skip
    scope.declare_object(item, span)
    if maps:
        initial.maps[name] = maps


def _maps(tokens: Tokens, scope: Scope, dims: list[int], name: str) -> list[MapFields]:
    if not dims:
        return [tensor_map(tokens, scope)]
    start = tokens.at
    found: list[MapFields] = []

    def nest(depth: int) -> None:
        tokens.expect("{")
        count = 0
        while tokens.text != "}":
            if depth + 1 == len(dims):
                found.append(tensor_map(tokens, scope))
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
) -> tuple[list[tuple[Expr, Span]], int]:
    """The values in memory order with zeros filled in, and the outermost count."""
    if not dims:
        return [_value(tokens, scope, kind)], 0
    zero = (Const(0), tokens.span())

    def nest(depth: int) -> list[tuple[Expr, Span]]:
        start = tokens.at
        tokens.expect("{", "a list in braces")
        found: list[tuple[Expr, Span]] = []
        count = 0
        inner = 1
        for dim in dims[depth + 1 :]:
            inner *= dim
        while tokens.text != "}":
            if dims[depth] and count == dims[depth]:
                raise problem("LIT028", tokens.span(), name=name, expected=f"at most {dims[depth]} elements")
            if depth + 1 == len(dims):
                found.append(_value(tokens, scope, kind))
            elif tokens.text == "{":
                found.extend(nest(depth + 1))
            else:
                raise problem("LIT028", tokens.span(start), name=name, expected="a list in braces for every dimension")
            count += 1
            if not tokens.accept(","):
                break
        tokens.expect("}", "',' or '}'")
        if depth > 0:
            found.extend([zero] * (dims[depth] * inner - len(found)))
        return found

    found = nest(0)
    inner = 1
    for dim in dims[1:]:
        inner *= dim
    return found, len(found) // max(inner, 1)


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
    expr = expression(tokens, scope)
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
    values: list[tuple[Expr, Span]], size: int, elem_size: int, kind: str, name: str, initial: Initial
) -> bytes:
    content = bytearray(size)
    bits = 8 * elem_size
    for index, (value, span) in enumerate(values):
        if isinstance(value, Const):
            if not -(1 << bits - 1) <= value.value < 1 << bits:
                raise problem("LIT029", span, value=value.value, type="." + kind)
            content[index * elem_size : (index + 1) * elem_size] = (value.value & (1 << bits) - 1).to_bytes(
                elem_size, "little"
            )
        else:
            initial.pointers.setdefault(name, []).append((index * elem_size, elem_size, kind, value, span))
    return bytes(content)
