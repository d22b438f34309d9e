"""Parser of operands (PTX ISA 6): registers, constants, addresses, vectors, pairs."""

from __future__ import annotations

import re

from mcheck.base.errors import InputError
from mcheck.base.records import replace
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.ptx.constants import parse_constant
from mcheck.frontend.ptx.cursor import DIRECTIVE, END, NAME, Cursor, line_span
from mcheck.frontend.ptx.module import SINK, Address, Negated, Operand, Pair, Part, Register, Special, Symbol, Vector
from mcheck.frontend.ptx.names import Scope
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.types import ELEMENTS, SIZES, SPECIAL

_PIECE = re.compile(
    r"[^,\[\]{}()]*+(?:(?:\[[^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+\]|\{[^{}]*+\}|\([^()]*+\))[^,\[\]{}()]*+)*+(,|\Z)"
)
"""An operand and the comma after it, with brackets nested as usual."""
_SELECTOR = re.compile(r"\.(?:[bh][0-3]{1,4}|[xyzwrgba])")
_MAX_DEPTH = 8


def parse_operands(source: Source, start: int, end: int, scope: Scope) -> tuple[Operand, ...]:
    """Parse the operands in ``source.clean[start:end]``."""
    text = source.clean[start:end]
    known = scope.operands
    found = known.get(text)
    if found is not None:
        return (found,)
    if not text or text.isspace():
        return ()
    made: list[Operand] = []
    at, end_of_text = 0, len(text)
    while True:
        match = _PIECE.match(text, at)
        if match is None:
            return _parse_nested(Cursor(source, start, end), scope)
        stop = match.start(1)
        word = text[at:stop]
        operand_here = known.get(word)
        if operand_here is None:
            name = word.strip()
            operand_here = scope.find(name) if name[:1] == "%" else None  # a plain register, as most operands are
            if operand_here is None:
                operand_here = _parse_whole(Cursor(source, start + at, start + stop), scope)
            known[word] = operand_here
        made.append(operand_here)
        if stop == end_of_text:
            return tuple(made)
        at = stop + 1


def _parse_nested(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """Parse operands whose brackets are nested deeper, or do not match."""
    made = [parse_operand(cursor, scope)]
    while cursor.accept(","):
        made.append(parse_operand(cursor, scope))
    if cursor.kind != END:
        raise _left_over_error(cursor)
    return tuple(made)


def _left_over_error(cursor: Cursor) -> InputError:
    """The error for text after the operands: usually the next line."""
    expected = "',' and a further operand, or ';'"
    if "\n" in cursor.source.clean[cursor.last : cursor.start]:
        return problem("PTX015", cursor.source.span(cursor.last), expected=expected)
    return cursor.unexpected(expected)


def _parse_whole(cursor: Cursor, scope: Scope) -> Operand:
    found = parse_operand(cursor, scope)
    if cursor.kind != END:
        raise _left_over_error(cursor)
    return found


def parse_operand(cursor: Cursor, scope: Scope, depth: int = 0) -> Operand:
    """Parse one operand."""
    text = cursor.text
    if depth > _MAX_DEPTH:
        raise problem("PTX014", cursor.span(), expected=f"at most {_MAX_DEPTH} levels")
    if text == "[":
        return _parse_address(cursor, scope, depth)
    if text == "{":
        cursor.advance()
        return Vector(_parse_list(cursor, scope, "}", depth))
    if cursor.kind == NAME and text != "WARP_SZ":
        found = _parse_named(cursor, scope)
        if cursor.text == "|" and isinstance(found, Register | type(SINK)):
            cursor.advance()
            return Pair(found, _parse_named(cursor, scope))
        return found
    if text == "!":
        start = cursor.start
        cursor.advance()
        if cursor.kind == NAME and cursor.text != "WARP_SZ":
            inner = _parse_named(cursor, scope)
            if not isinstance(inner, Register):
                raise problem("PTX033", cursor.span_since(start), found="this", expected="a predicate register")
            return Negated(inner)
        cursor.seek(start)
    if cursor.kind == END:
        raise cursor.unexpected("an operand")
    return parse_constant(cursor)


def _parse_list(cursor: Cursor, scope: Scope, end: str, depth: int) -> tuple[Operand, ...]:
    if cursor.accept(end):
        return ()
    items = [parse_operand(cursor, scope, depth + 1)]
    while not cursor.accept(end):
        cursor.expect(",", f"',' or '{end}'")
        items.append(parse_operand(cursor, scope, depth + 1))
    return tuple(items)


def _parse_named(cursor: Cursor, scope: Scope) -> Operand:
    """Parse a name with its suffix: an element, an offset, an index."""
    name = cursor.text
    if cursor.kind != NAME:
        raise cursor.unexpected("a register or '_'")
    start = cursor.start
    cursor.advance()
    if name == "_":
        return SINK
    found = scope.find(name)
    if isinstance(found, Symbol):
        return _parse_offset(cursor, scope, found)
    if found is None:
        return _parse_special(cursor, scope, name, start)
    if cursor.kind == DIRECTIVE and cursor.start == cursor.last and _SELECTOR.fullmatch(cursor.text):
        selector = cursor.text[1:]
        cursor.advance()
        if isinstance(found, Register):
            if selector in ELEMENTS:
                expected = "a part that a register has ('.b0', '.h1'), or a vector"
                raise problem("PTX033", cursor.span_since(start), found=f"{name}.{selector}", expected=expected)
            return Part(found, selector)
        assert isinstance(found, Vector)
        index = ELEMENTS.get(selector, len(found.items))
        if index >= len(found.items):
            span = cursor.span_since(start)
            raise problem("PTX033", span, found=f"{name}.{selector}", expected=f"one of {len(found.items)} elements")
        return found.items[index]
    return found


def _parse_special(cursor: Cursor, scope: Scope, name: str, start: int) -> Operand:
    whole = name
    if cursor.kind == DIRECTIVE and cursor.start == cursor.last:
        whole += cursor.text
    if SPECIAL.fullmatch(whole):
        if whole != name:
            cursor.advance()
        return Special(whole[1:])
    raise undeclared_error(cursor, scope, name, start)


def undeclared_error(cursor: Cursor, scope: Scope, name: str, start: int) -> InputError:
    """The error for an undeclared name."""
    span = line_span(cursor.source, start, start + len(name))
    expected = "a declared register" if name[0] == "%" else "a declared register, variable or function"
    return problem("PTX030", span, name=name, expected=expected, hint=scope.suggest(name))


def _parse_offset(cursor: Cursor, scope: Scope, symbol: Symbol) -> Symbol:
    """Parse ``a``, ``a+4``, ``a-4``, ``a[2]`` (the element's address)."""
    if cursor.text in ("+", "-"):
        return replace(symbol, offset=symbol.offset + _parse_number(cursor))
    while cursor.text == "[":
        cursor.advance()
        index = parse_constant(cursor).value
        cursor.expect("]")
        symbol = replace(symbol, offset=symbol.offset + index * _element_size(scope, symbol.name))
    return symbol


def _element_size(scope: Scope, name: str) -> int:
    """The bytes of an element of a variable."""
    variable = scope.names.variables.get(name) or scope.names.module.get(name)
    return SIZES.get(getattr(variable, "type", ""), 1) * getattr(variable, "width", 1)


def _parse_number(cursor: Cursor) -> int:
    """Parse ``+ constant`` or ``- constant``, an integer."""
    start = cursor.start
    negative = cursor.text == "-"
    cursor.advance()
    found = parse_constant(cursor)
    if found.kind != "int":
        raise problem("PTX033", cursor.span_since(start), found="this", expected="a whole number of bytes")
    value = found.value if found.value < 1 << 63 else found.value - (1 << 64)
    return -value if negative else value


def _parse_address(cursor: Cursor, scope: Scope, depth: int) -> Address:
    """Parse ``[…]``."""
    cursor.expect("[")
    start = cursor.start
    base: Register | Symbol | Special | None = None
    offset = 0
    if cursor.kind == NAME and cursor.text != "WARP_SZ":
        named = _parse_named(cursor, scope)
        if not isinstance(named, Symbol | Register | Special):
            raise problem("PTX033", cursor.span_since(start), found="this", expected="a register or a variable")
        base = named
        if isinstance(named, Symbol):
            base, offset = replace(named, offset=0), named.offset
        elif cursor.text in ("+", "-"):
            offset = _parse_number(cursor)
    else:
        found = parse_constant(cursor)
        if found.kind != "int":
            raise problem("PTX033", cursor.span_since(start), found="this", expected="an address")
        offset = found.value
    rest: tuple[Operand, ...] = ()
    if cursor.accept(","):
        rest = _parse_list(cursor, scope, "]", depth)
    else:
        cursor.expect("]", "'+' and an offset, ',' or ']'")
    return Address(base, offset, rest)
