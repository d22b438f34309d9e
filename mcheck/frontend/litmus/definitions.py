"""The parser of definitions: ``const``, ``.reg``, ``def`` and ``include``, before or after the init block.

``def stage(k) = k % S;`` is a function of values that are known before a thread runs, or of registers; its calls are
replaced by what they stand for. ``include "ring.inc";`` reads such definitions from a file of the same folder.
"""

from __future__ import annotations

import os
import re

from mcheck.base.errors import InputError
from mcheck.base.files import is_in_folder_of, is_regular_file
from mcheck.frontend.litmus.codes import problem
from mcheck.frontend.litmus.declarations import parse_constants, parse_registers
from mcheck.frontend.litmus.expressions import parse_expression
from mcheck.frontend.litmus.lexer import END, Tokens
from mcheck.frontend.litmus.scope import Function, Scope
from mcheck.frontend.litmus.source import Source, read_source

DEFINITIONS = frozenset(("const", ".reg", "def", "include"))
"""The words that definitions begin with."""
INCLUDE = re.compile(r'include[ \t]+"([^"\n]*)"')


def parse_definition(tokens: Tokens, scope: Scope) -> bool:
    """Parse a definition with its semicolon; returns whether there was one."""
    match tokens.text:
        case "const":
            parse_constants(tokens, scope)
        case ".reg":
            parse_registers(tokens, scope)
        case "def":
            _function(tokens, scope)
        case "include":
            _include(tokens, scope)
        case _:
            return False
    tokens.semicolon()
    return True


def _function(tokens: Tokens, scope: Scope) -> None:
    """Parse ``def name(a, b) = expression``."""
    tokens.expect("def")
    at = tokens.at
    name = tokens.name("the name of a function")
    tokens.expect("(")
    inner = Scope(scope)
    params: list[str] = []
    while tokens.text != ")":
        where = tokens.at
        params.append(tokens.name("a parameter"))
        inner.declare_symbol(params[-1], tokens.span(where))
        if not tokens.accept(","):
            break
    tokens.expect(")", "',' or ')'")
    tokens.expect("=")
    body = parse_expression(tokens, inner)
    scope.declare_function(Function(name, tuple(params), body), tokens.span(at))


def _include(tokens: Tokens, scope: Scope) -> None:
    """Parse ``include "name"``: the definitions of a file in the same folder."""
    source = tokens.source
    start = tokens.starts[tokens.at]
    written = INCLUDE.match(source.clean, start)
    if written is None:
        tokens.at += 1
        raise tokens.unexpected("the name of a file in quotes")
    while tokens.kind != END and tokens.starts[tokens.at] < written.end():
        tokens.at += 1
    span = source.span(written.start(1), max(len(written[1]), 1))
    path = find_included_file(source.path, written[1])
    if path is None:
        reason = "it must be in the same folder"
        raise problem("LIT090", span, name=written[1], reason=reason, hint="write the file name without a path")
    try:
        inner = Source(read_source(path), path)
    except InputError as error:
        raise problem("LIT090", span, name=written[1], reason=error.message) from None
    given = Tokens(inner, 0, len(inner.clean))
    while given.kind != END:
        if given.accept(";"):
            continue
        if given.text == "include" or not parse_definition(given, scope):
            raise problem("LIT091", given.span(), expected="const, def or .reg")


def find_included_file(path: str, name: str) -> str | None:
    """The file of this name in the folder of ``path``, ``None`` if the name leads elsewhere."""
    if not name or name in (".", "..") or re.search(r"[/\\:\0]", name):
        return None
    found = os.path.join(os.path.dirname(path), name)
    return found if is_in_folder_of(found, path) else None


def read_included_texts(source: Source) -> tuple[str, ...]:
    """The texts of the files that a file includes, as part of cache keys; empty if one cannot be read."""
    texts: list[str] = []
    for name in dict.fromkeys(INCLUDE.findall(source.clean)):
        path = find_included_file(source.path, name)
        try:
            texts.append(read_source(path) if path is not None and is_regular_file(path) else "")
        except InputError:
            texts.append("")
    return tuple(texts)
