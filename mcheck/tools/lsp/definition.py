"""Go to definition: in the text itself, or in a file that a model includes."""

from __future__ import annotations

from pathlib import Path

from mcheck.base.errors import Span
from mcheck.base.files import read_text_file as read
from mcheck.tools.lsp.symbols import Symbol, find_symbols, word_at

TEST_NAME = r"%?[A-Za-z_$][\w$]*"
CAT_NAME = r"_?[A-Za-z][\w.\-]*'?"
_INCLUDE = r'"[^"\n]*"'


def find_definition(text: str, path: str, line: int, column: int) -> Span | None:
    """The span of the definition of the name at a 0-based position."""
    if path.endswith(".cat"):
        return _in_model(text, path, line, column)
    quoted = word_at(text, line, column, _INCLUDE)
    if quoted is not None and text.split("\n")[line].lstrip().startswith("include"):
        return Span(_beside(quoted[0].strip('"'), path), 1, 1)
    found = word_at(text, line, column, TEST_NAME)
    if found is None:
        return None
    name, defined = found[0].lstrip("%"), find_symbols(text, path)
    return _nearest(name, defined, line + 1) or _in_common(name, defined, path)


def definition_line(text: str, span: Span, path: str) -> str:
    """The text of the line of a definition."""
    lines = (text if span.path == path else read(span.path)).split("\n")
    return lines[span.line - 1] if span.line <= len(lines) else ""


def _nearest(name: str, defined: tuple[Symbol, ...], line: int) -> Span | None:
    """The definition in the same thread, otherwise a global one, otherwise any."""
    here = [s for s in defined if s.name == name and s.kind not in ("condition", "include")]
    owners = {s.name for s in defined if s.kind == "thread" and s.span.line <= line <= s.until}
    ranked = sorted(here, key=lambda s: (s.owner not in owners, bool(s.owner)))
    return ranked[0].span if ranked else None


def _in_common(name: str, defined: tuple[Symbol, ...], path: str) -> Span | None:
    """The definition in a file that a test includes."""
    for symbol in defined:
        if symbol.kind == "include":
            file = _beside(symbol.name, path)
            try:
                inner = find_symbols(read(file), file)
            except (OSError, ValueError):
                continue
            if (found := _nearest(name, inner, 0)) is not None:
                return found
    return None


def _beside(name: str, path: str) -> str:
    return str(Path(path).parent / name)


def _in_model(text: str, path: str, line: int, column: int) -> Span | None:
    """The last ``let`` before the position, then those of included files, then those of the library of all models."""
    from mcheck.cat.model_files import STANDARD, find_included_file

    quoted = word_at(text, line, column, _INCLUDE)
    if quoted is not None:
        target = find_included_file(quoted[0].strip('"'), path)
        return Span(str(target), 1, 1) if target is not None else None
    found = word_at(text, line, column, CAT_NAME)
    if found is None:
        return None
    own = [s for s in find_symbols(text, path) if s.kind == "let" and s.name == found[0]]
    before = [s for s in own if s.span.line <= line + 1]
    if before or own:
        return (before or own)[-1].span
    seen: set[str] = set()
    return _in_includes(found[0], text, path, seen) or _in_file(found[0], STANDARD, seen)


def _in_includes(name: str, text: str, path: str, seen: set[str]) -> Span | None:
    from mcheck.cat.model_files import find_included_file

    for symbol in find_symbols(text, path):
        target = find_included_file(symbol.name, path) if symbol.kind == "include" else None
        if target is not None and (found := _in_file(name, str(target), seen)) is not None:
            return found
    return None


def _in_file(name: str, path: str, seen: set[str]) -> Span | None:
    if path in seen:
        return None
    seen.add(path)
    try:
        text = read(path)
    except (OSError, ValueError):
        return None
    own = [s.span for s in find_symbols(text, path) if s.kind == "let" and s.name == name]
    return own[-1] if own else _in_includes(name, text, path, seen)
