"""Parser of declarations: registers, variables with their initialisers, parameters (PTX ISA 5.4, 6.2, 11.6)."""

from __future__ import annotations

import re
from math import prod
from typing import Final

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.ptx.constants import parse_constant, parse_literal
from mcheck.frontend.ptx.cursor import DIRECTIVE, END, NAME, Cursor
from mcheck.frontend.ptx.module import Immediate, Parameter, Symbol, Variable
from mcheck.frontend.ptx.names import Scope
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.types import OPAQUE, SIZES, VECTORS

SPACES: Final = ("global", "shared", "const", "local", "param", "tex", "reg")
LINKAGES: Final = ("extern", "visible", "weak", "common")
_POINTED: Final = ("const", "global", "local", "shared")
_MAX_ALIGN = 1 << 30
_PLAIN = re.compile(r"\{(\s*+(?:0|[1-9]\d{0,17})\s*+(?:,\s*+(?:0|[1-9]\d{0,17})\s*+)*+)\}", re.ASCII)
"""A list of plain numbers, which may be long."""


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The type and the attributes of a declaration, before its names."""

    type: str
    width: int
    align: int | None
    attributes: tuple[str, ...] = ()
    pointer: str | None = None
    pointer_align: int | None = None

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return SIZES[self.type] * self.width


def parse_integer(cursor: Cursor) -> int:
    """Parse a constant expression that is an integer."""
    start = cursor.start
    found = parse_constant(cursor)
    if found.kind != "int":
        raise problem("PTX033", cursor.span_since(start), found="this", expected="an integer")
    return found.value


def parse_type(cursor: Cursor) -> DeclaredType:
    """Parse ``.align``, ``.attribute``, ``.ptr``, ``.v2`` and the type of a declaration."""
    width, name = 1, ""
    align: int | None = None
    found_attributes: tuple[str, ...] = ()
    pointer: str | None = None
    pointer_align: int | None = None
    while cursor.kind == DIRECTIVE:
        word, span = cursor.text[1:], cursor.span()
        cursor.advance()
        if word == "align":
            found = parse_integer(cursor)
            if found < 1 or found & (found - 1) or found > _MAX_ALIGN:
                raise problem("PTX022", span, found=found)
            if pointer is None:
                align = found
            else:
                pointer_align = found
        elif word in VECTORS:
            width = VECTORS[word]
        elif word == "attribute":
            found_attributes = parse_attributes(cursor)
        elif word == "ptr":
            pointer = "generic"
        elif pointer is not None and word in _POINTED:
            pointer = word
        elif word in SIZES and not name:
            name = word
        else:
            raise problem("PTX021", span, found=word, hint=suggest(word, SIZES))
    if not name:
        raise cursor.unexpected("a type, such as .b32")
    return DeclaredType(name, width, align, found_attributes, pointer, pointer_align)


def parse_attributes(cursor: Cursor) -> tuple[str, ...]:
    """Parse ``(.managed, .unified(1, 2))``."""
    found = []
    cursor.expect("(")
    while True:
        word = cursor.take(DIRECTIVE, "an attribute")
        if cursor.accept("("):
            arguments = [str(parse_integer(cursor))]
            while cursor.accept(","):
                arguments.append(str(parse_integer(cursor)))
            cursor.expect(")")
            word += f"({', '.join(arguments)})"
        found.append(word[1:])
        if not cursor.accept(","):
            cursor.expect(")", "',' or ')'")
            return tuple(found)


def _parse_shape(cursor: Cursor) -> tuple[int | None, ...]:
    """Parse ``[4][16]``; the first may be open."""
    shape: list[int | None] = []
    while cursor.accept("["):
        if not shape and cursor.accept("]"):
            shape.append(None)
            continue
        span = cursor.span()
        extent = parse_integer(cursor)
        if not 0 <= extent < 1 << 48:
            raise problem("PTX023", span, found=extent)
        shape.append(extent)
        cursor.expect("]")
    return tuple(shape)


def parse_registers(cursor: Cursor, scope: Scope) -> None:
    """Parse what follows ``.reg``: ``.pred %p<3>, q;``."""
    what = parse_type(cursor)
    while True:
        span = cursor.span()
        name = cursor.take(NAME, "the name of a register")
        count: int | None = None
        if cursor.accept("<"):
            count = parse_literal(cursor).value
            cursor.expect(">")
        scope.declare_registers(name, what.type, what.width, count, span)
        if not cursor.accept(","):
            cursor.expect(";", "',' or ';'")
            return


def parse_variables(cursor: Cursor, space: str, linkage: str, scope: Scope) -> list[Variable]:
    """Parse what follows ``.global`` and similar directives; initialisers look names up in ``scope``."""
    what = parse_type(cursor)
    found: list[Variable] = []
    while True:
        start, span = cursor.start, cursor.span()
        name = cursor.take(NAME, "the name of a variable")
        shape = _parse_shape(cursor)
        variable = Variable(
            name=name,
            space=space,
            type=what.type,
            align=what.align or what.size,
            size=None if shape[:1] == (None,) else what.size * prod(n for n in shape if n is not None),
            shape=shape,
            width=what.width,
            linkage=linkage,
            attributes=what.attributes,
            span=span,
        )
        if cursor.accept("<"):
            count = parse_literal(cursor).value
            cursor.expect(">")
            if not 0 <= count <= 1 << 16:
                raise problem("PTX023", span, found=count)
            found += [replace(variable, name=f"{name}{k}") for k in range(count)]
        elif cursor.accept("="):
            found.append(_parse_initialiser(cursor, variable, what, scope, start))
        else:
            found.append(variable)
        if not cursor.accept(","):
            cursor.expect(";", "',', '=' or ';'")
            return found


# --- initialisers ---------------------------------------------------------------------------------------------


def _parse_initialiser(cursor: Cursor, variable: Variable, what: DeclaredType, scope: Scope, start: int) -> Variable:
    """Parse an initialiser; nested braces give each row its place, missing elements are zero."""
    if what.type in OPAQUE:
        _skip_braces(cursor)
        return variable
    if cursor.text != "{":
        return replace(variable, initial=((0, what.size, _parse_element(cursor, what, scope)),))
    extents = [*variable.shape, *((what.width,) if what.width > 1 else ())] or [None]
    rows = [1]
    for extent in reversed(extents[1:]):
        rows.insert(0, rows[0] * (extent or 1))
    element = SIZES[what.type]
    elements: list[tuple[int, int, Immediate | Symbol]] = []
    used = _parse_elements(cursor, what, scope, rows, 0, 0, elements)
    size = variable.size
    if size is None:
        row = rows[0] * element
        count = -(-used * element // row) if row else 0
        size = count * row
        variable = replace(variable, size=size, shape=(count, *variable.shape[1:]))
    if used * element > size:
        span = cursor.span_since(start)
        raise problem("PTX024", span, found=used, name=variable.name, room=size // element)
    initial = tuple((at * element, wide, value) for at, wide, value in elements)
    return replace(variable, size=size, initial=initial)


def _parse_elements(
    cursor: Cursor,
    what: DeclaredType,
    scope: Scope,
    rows: list[int],
    level: int,
    at: int,
    elements: list[tuple[int, int, Immediate | Symbol]],
) -> int:
    """Parse ``{…}`` whose items begin at element ``at``; returns the element after the last one given."""
    row = rows[min(level, len(rows) - 1)]
    plain = _PLAIN.match(cursor.source.clean, cursor.start, cursor.end)
    if plain is not None:
        values = [int(word) for word in plain[1].split(",")]
        size = SIZES[what.type]
        elements += [(at + k, size, Immediate(value)) for k, value in enumerate(values)]
        cursor.seek(plain.end())
        return at + len(values)
    cursor.expect("{")
    while not cursor.accept("}"):
        if cursor.text == "{":
            if level >= len(rows):
                raise cursor.unexpected("a value")
            _parse_elements(cursor, what, scope, rows, level + 1, at, elements)
            at += row
        else:
            elements.append((at, SIZES[what.type], _parse_element(cursor, what, scope)))
            at += 1
        if not cursor.accept(","):
            cursor.expect("}", "',' or '}'")
            break
    return at


def _parse_element(cursor: Cursor, what: DeclaredType, scope: Scope) -> Immediate | Symbol:
    """Parse a constant, ``name + 4``, ``generic(name) + 4`` or ``0xFF(name)`` (a byte of an address)."""
    size = SIZES[what.type]
    if cursor.kind == NAME and cursor.text != "WARP_SZ":
        return _parse_symbol(cursor, scope)
    start = cursor.start
    found = parse_constant(cursor)
    if cursor.text == "(" and found.kind == "int":
        cursor.advance()
        symbol = _parse_symbol(cursor, scope)
        cursor.expect(")")
        return symbol
    if found.kind == "int" and found.value.bit_length() > 8 * max(size, 8):
        raise problem("PTX012", cursor.span_since(start), found=found.value)
    return found


def _parse_symbol(cursor: Cursor, scope: Scope) -> Symbol:
    name, span = cursor.text, cursor.span()
    cursor.advance()
    generic = name == "generic" and cursor.accept("(")
    if generic:
        name, span = cursor.text, cursor.span()
        cursor.take(NAME, "the name of a variable")
    found = scope.find(name)
    if not isinstance(found, Symbol):
        raise problem("PTX030", span, name=name, expected="a variable or a function", hint=scope.suggest(name))
    offset = 0
    if generic:
        cursor.expect(")")
    while cursor.text in ("+", "-"):
        negative = cursor.text == "-"
        cursor.advance()
        offset += -parse_integer(cursor) if negative else parse_integer(cursor)
    return Symbol(found.name, offset, generic)


def _skip_braces(cursor: Cursor) -> None:
    """Skip ``{…}`` with any contents."""
    cursor.expect("{")
    while cursor.text != "}":
        if cursor.kind == END:
            raise cursor.unexpected("'}'")
        cursor.advance()
    cursor.advance()


# --- parameters -----------------------------------------------------------------------------------------------


def parse_parameters(cursor: Cursor) -> tuple[Parameter, ...]:
    """Parse ``(.param .u64 .ptr .global .align 16 a, .reg .b32 n)``."""
    found: list[Parameter] = []
    cursor.expect("(")
    if cursor.accept(")"):
        return ()
    while True:
        found.append(_parse_parameter(cursor))
        if not cursor.accept(","):
            cursor.expect(")", "',' or ')'")
            return tuple(found)


def _parse_parameter(cursor: Cursor) -> Parameter:
    if cursor.text not in (".param", ".reg"):
        raise cursor.unexpected(".param or .reg")
    space = cursor.text[1:]
    cursor.advance()
    what = parse_type(cursor)
    span: Span = cursor.span()
    name = cursor.take(NAME, "the name of a parameter")
    if cursor.accept("<"):
        raise problem("PTX033", span, found="a range", expected="a single name")
    shape = _parse_shape(cursor)
    return Parameter(
        name=name,
        type=what.type,
        space=space,
        align=what.align or what.size,
        size=None if shape[:1] == (None,) else what.size * prod(n for n in shape if n is not None),
        shape=shape,
        pointer=what.pointer,
        pointer_align=what.pointer_align,
        span=span,
    )
