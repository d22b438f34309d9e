"""Quoting of cat expressions in error messages."""

from __future__ import annotations

from mcheck.base.errors import InputError
from mcheck.cat.ast import Kind
from mcheck.cat.messages import error
from mcheck.cat.scanner import Source
from mcheck.cat.syntax import Expr, Name


def quote(raw: Expr, source: Source) -> str:
    """The expression as written, on one line and not too long."""
    text = _without_parentheses(" ".join(source.text[raw.start : raw.end].split()))
    return text if len(text) <= 40 else text[:37] + "..."


def _without_parentheses(text: str) -> str:
    """``text`` without a pair of parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1].strip() if index == len(text) - 1 else text
    return text


def wrong_kind(what: str, raw: Expr, source: Source, kind: Kind) -> InputError:
    """``what`` needs one of ``kind`` and ``raw`` is of the other."""
    text = quote(raw, source)
    span = source.span(raw.start, raw.end)
    if kind is Kind.REL:
        return error("CAT021", span, what=what, operand=text, hint=f"write [{text}]")
    hint = None if what == "[]" else f"write domain({text}) or range({text})"
    return error("CAT022", span, what=what, operand=text, hint=hint)


def wrong_count(name: Expr, params: tuple[str, ...], given: int, source: Source) -> InputError:
    """A function or a procedure with another number of arguments than it has parameters."""
    takes = f"{len(params)} argument{'s' if len(params) != 1 else ''}"
    count = f"{given} {'is' if given == 1 else 'are'}"
    return error("CAT027", source.span(name.start, name.end), what=quote(name, source), takes=takes, given=count)


def no_duplicates(names: tuple[Name, ...], source: Source) -> None:
    """An error if a name is bound twice at once; ``_`` binds nothing."""
    if len(names) < 2:
        return
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise error("CAT028", source.span(name.start, name.end), what=name.text)
        if name.text != "_":
            seen.add(name.text)


def unevaluated(raw: Expr, what: str, why: str, source: Source) -> InputError:
    """An expression whose value no model can be made of."""
    return error("CAT046", source.span(raw.start, raw.end), what=what, why=why)
