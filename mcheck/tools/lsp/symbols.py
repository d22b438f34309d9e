"""Symbols of a text: names and their definitions, from its tokens alone, so that incomplete texts have them too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.base.errors import McheckError, Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.definitions import INCLUDE
from mcheck.frontend.litmus.lexer import END, NAME, Tokens
from mcheck.frontend.litmus.source import Source

_STRING = re.compile(r'"[^"\n]*"')
_NOT_NEWLINE = re.compile(r"[^\n]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_CAT_LET = re.compile(r"\b(?:let(?:\s+rec)?|and|procedure|fun)\s+(?P<name>_?[A-Za-z][\w.\-]*'?)")
_CAT_TEST = re.compile(r"\b(?:acyclic|irreflexive|empty)\b[^\n]*?\bas\s+(?P<name>_?[A-Za-z][\w.\-]*'?)")
_CAT_INCLUDE = re.compile(r'\binclude\s+"(?P<name>[^"\n]*)"')
_SPACES = frozenset({".global", ".shared", ".const", ".param"})
_DEFINING = frozenset({"const", "def", "include", ".reg"})
_TAIL = frozenset({"exists", "forall", "final", "locations", "filter", "expect", "~", "not"})


@dataclass(frozen=True, slots=True)
class Symbol:
    """A defined name. ``kind``: object, constant, function, register, label, loop, thread, condition, include; let and
    check in cat.

    ``span`` is the place of the name, ``owner`` the thread of a label or a register, ``until`` the last line of the
    block of a thread.
    """

    name: str
    kind: str
    span: Span
    owner: str = ""
    until: int = 0


def find_symbols(text: str, path: str) -> tuple[Symbol, ...]:
    """The symbols of a litmus test or a model, in the order of the text; none of a module, which compilers write."""
    if path.endswith(".ptx"):
        return ()
    found = _of_model(text, path) if path.endswith(".cat") else _of_test(text, path)
    return tuple(sorted(found, key=lambda s: (s.span.line, s.span.column)))


def word_at(text: str, line: int, column: int, pattern: str) -> tuple[str, int] | None:
    """The match of ``pattern`` at a 0-based line and column, and its start."""
    lines = text.split("\n")
    if not 0 <= line < len(lines):
        return None
    found = (m for m in re.finditer(pattern, lines[line], re.ASCII) if m.start() <= column <= m.end())
    return next(((m[0], m.start()) for m in found if m[0]), None)


# --- cat --------------------------------------------------------------------------------------------------------


def _of_model(text: str, path: str) -> Iterator[Symbol]:
    source = _source(text, path)
    for kind, pattern in (("let", _CAT_LET), ("check", _CAT_TEST), ("include", _CAT_INCLUDE)):
        for match in pattern.finditer(source.clean):
            yield Symbol(match["name"], kind, source.span(match.start("name"), len(match["name"])))


# --- litmus -----------------------------------------------------------------------------------------------------


def _source(text: str, path: str) -> Source:
    """The text without comments; unchanged if a comment does not end."""
    try:
        return Source(text, path)
    except McheckError:
        source = Source("", path)
        source.text = source.clean = text
        return source


def _of_test(text: str, path: str) -> Iterator[Symbol]:
    source = _source(text, path)
    clean = _STRING.sub(lambda m: _NOT_NEWLINE.sub(" ", m[0]), source.clean)
    tokens = Tokens(source, 0, len(clean), clean)
    for match in INCLUDE.finditer(source.clean):
        yield Symbol(match[1], "include", source.span(match.start(1), max(len(match[1]), 1)))
    start = next((k for k, text_ in enumerate(tokens.texts) if text_ == "{"), len(tokens.texts) - 1)
    end = _closing(tokens, start)
    yield from _declared(tokens, 0, start)
    yield from _declared(tokens, start + 1, end)
    if _is_table(tokens, end + 1):
        yield from _of_table(source, clean, tokens, end + 1)
    else:
        yield from _of_blocks(tokens, end + 1)


def _closing(tokens: Tokens, at: int) -> int:
    """The index of the closing brace of the one at ``at``, or of the end."""
    depth = 0
    for k in range(at, len(tokens.texts)):
        depth += {"{": 1, "}": -1}.get(tokens.texts[k], 0)
        if depth == 0 or tokens.kinds[k] == END:
            return k
    return len(tokens.texts) - 1


def _symbol(tokens: Tokens, at: int, kind: str, owner: str = "", until: int = 0) -> Symbol:
    return Symbol(tokens.texts[at], kind, tokens.span(at), owner, until)


def _declared(tokens: Tokens, start: int, end: int) -> Iterator[Symbol]:
    """The declarations between two indices: variables, constants, registers, locations of the dialect."""
    statement: list[int] = []
    depth = 0
    for k in range(start, min(end + 1, len(tokens.texts))):
        text = tokens.texts[k]
        depth += (text in "{[(") - (text in "}])") if len(text) == 1 else 0
        if k == end or (text == ";" and depth <= 0) or tokens.kinds[k] == END:
            yield from _declaration(tokens, statement)
            statement, depth = [], 0
        else:
            statement.append(k)


def _declaration(tokens: Tokens, statement: list[int], owner: str = "") -> Iterator[Symbol]:
    words = [tokens.texts[k] for k in statement]
    if not words:
        return
    if words[0] in ("const", "def") and len(words) > 1:
        yield _symbol(tokens, statement[1], "constant" if words[0] == "const" else "function", owner)
    elif words[0] == ".reg" or words[0] in _SPACES:
        kind = "register" if words[0] == ".reg" else "object"
        depth = 0
        for place, k in enumerate(statement[1:], start=1):
            text = words[place]
            if depth == 0 and _IDENTIFIER.fullmatch(text) and words[place - 1] != "=":
                yield _symbol(tokens, k, kind, owner)
            depth += {"{": 1, "[": 1, "<": 1, "}": -1, "]": -1, ">": -1}.get(text, 0)
    elif _IDENTIFIER.fullmatch(words[0]) and words[1:2] in (["="], ["@"]):
        yield _symbol(tokens, statement[0], "object", owner)


def _is_table(tokens: Tokens, at: int) -> bool:
    """Whether a row ends before a block begins."""
    rest = tokens.texts[at:]
    first = next((t for t in rest if t in ("{", ";", "|")), "")
    return first in (";", "|") and not _DEFINING.intersection(rest[:1])


def _of_table(source: Source, clean: str, tokens: Tokens, at: int) -> Iterator[Symbol]:
    start = tokens.starts[at]
    names: list[str] = []
    for number, row in enumerate(re.finditer(r"[^;]*;", clean[start:])):
        offset = start + row.start()
        for column, cell in enumerate(row[0][:-1].split("|")):
            word = _IDENTIFIER.search(cell)
            if word is not None and number == 0:
                names.append(word[0])
                last = clean.count("\n", 0, len(clean.rstrip())) + 1
                yield Symbol(word[0], "thread", source.span(offset + word.start(), len(word[0])), until=last)
            elif word is not None and cell[word.end() : word.end() + 1] == ":" and column < len(names):
                yield Symbol(word[0], "label", source.span(offset + word.start(), len(word[0])), names[column])
            offset += len(cell) + 1
    yield from _conditions(tokens, at)


def _of_blocks(tokens: Tokens, at: int) -> Iterator[Symbol]:
    k = at
    while k < len(tokens.texts) and tokens.kinds[k] != END:
        text = tokens.texts[k]
        if text in _TAIL:
            yield from _conditions(tokens, k)
            return
        if text in _DEFINING:
            statement = list(range(k, next((j for j in range(k, len(tokens.texts)) if tokens.texts[j] == ";"), k)))
            yield from _declaration(tokens, statement)
            k += len(statement) + 1
            continue
        brace = next((j for j in range(k, len(tokens.texts)) if tokens.texts[j] == "{" or not tokens.kinds[j]), k)
        end = _closing(tokens, brace)
        if tokens.kinds[k] == NAME and tokens.texts[brace] == "{":
            yield _symbol(tokens, k, "thread", until=tokens.span(end).line)
            yield from _of_role(tokens, brace + 1, end, text)
        k = max(end, k) + 1


def _of_role(tokens: Tokens, start: int, end: int, owner: str) -> Iterator[Symbol]:
    k = start
    while k < end:
        text, before, after = tokens.texts[k], tokens.texts[k - 1], tokens.texts[k + 1]
        if text == "for" and tokens.kinds[k + 1] == NAME:
            yield _symbol(tokens, k + 1, "loop", owner)
        elif after == ":" and before in ("{", "}", ";", ":") and _IDENTIFIER.fullmatch(text):
            yield _symbol(tokens, k, "label", owner)
        elif text in _DEFINING:
            last = next((j for j in range(k, end) if tokens.texts[j] == ";"), end)
            yield from _declaration(tokens, list(range(k, last)), owner)
            k = last
        k += 1


def _conditions(tokens: Tokens, at: int) -> Iterator[Symbol]:
    """The condition and the expectations, for the outline."""
    for k in range(at, len(tokens.texts)):
        if tokens.texts[k] in ("exists", "forall", "final"):
            yield _symbol(tokens, k, "condition")
        elif tokens.texts[k] == "expect":
            span = tokens.span(k)
            yield Symbol(f"expect {tokens.texts[k + 1]}", "condition", span)
