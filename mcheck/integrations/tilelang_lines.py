"""Lines of the Python source for statements of the generated CUDA C++ that have lost theirs.

TileLang drops the spans of copies in a pipeline, and products and reductions are macros of its own. What remains are
the names of buffers and loop variables: a copy is the ``T.copy`` that names its buffers, a product the ``T.gemm``, and
what synchronises is of the loop that it stands in. A statement that fits several calls equally well is left to that
loop.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcheck.base.records import dataclass

_LINE = re.compile(r'\s*#line\s+(?P<line>\d+)\s+"(?P<path>[^"]+)"')
_NAME = re.compile(r"[A-Za-z_]\w*")
_SUFFIX = re.compile(r"_desc$|(?<=\w)_\d+$")
_LOOP = re.compile(r"\s*for \(int (?P<name>\w+) =")
_KINDS = (
    (
        "gemm",
        re.compile(
            r"\b(?:tl::)?(?:wgmma|initialize_wgmma|mma|gemm|tcgen05mma|umma|warpgroup_(?!reg_))\w*|Gmma|descriptor_offset"
        ),
    ),
    ("copy", re.compile(r"\btl::(?:tma_(?:load|store|reduce)|cp_async)\w*")),
    ("reduce", re.compile(r"\btl::\w*[Rr]educe")),
)
"""What calls of TileLang's are named after, and the statements that it generates for them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a kernel in Python: the names in it, and the last parts of the names of what it calls."""

    line: int
    names: frozenset[str]
    calls: frozenset[str]
    loop: frozenset[str] = frozenset()
    """The variables of a ``for``, of which the names are those of its head."""


def with_python_lines(source: str, library: str) -> str:
    """The generated source, with a directive for each line without one that comes from a statement of the kernel.

    Directives into the folder ``library`` are of macros, whose lines are the same for every call; they count as none.
    """
    path, statements = _kernel_of(source, library)
    if path is None:
        return source
    found: list[str] = []
    given = ""  # the directive that holds for the next line
    loops: list[tuple[int, int | None]] = []  # the depth of each loop that is open, and its line
    depth, product = 0, None
    for text in source.splitlines():
        if _LINE.match(text):
            given = "" if f'"{library}' in text else text
            continue
        depth += text.count("}") * -1 if text.lstrip().startswith("}") else 0
        loops = [loop for loop in loops if loop[0] < depth] if text.strip() == "}" else loops
        kind = next((name for name, pattern in _KINDS if pattern.search(text)), None)
        line = _match(text, kind, statements)
        if kind == "gemm":
            product = line = line if line is not None else product
        if head := _LOOP.match(text):
            named = [s.line for s in statements if _plain(head["name"]) in s.loop]
            own = int(directive["line"]) if (directive := _LINE.match(given)) and directive["path"] == path else None
            loops.append((depth, named[0] if len(named) == 1 else own))
            line = line if line is not None else loops[-1][1]
        if line is None and kind != "gemm":
            line = next((at for _, at in reversed(loops) if at is not None), None)
        depth += text.count("{") - (0 if text.lstrip().startswith("}") else text.count("}"))
        if given or (line is not None and re.search(r"\w", text)):
            found.append(given or f'#line {line} "{path}"')
        found.append(text)
        if not text.lstrip().startswith("#pragma"):
            given = ""
    return "\n".join(found) + "\n"


def _match(text: str, kind: str | None, statements: Iterable[Statement]) -> int | None:
    """The line of the call of a kind that shares most names with a generated statement; ``None`` if there are two."""
    if kind is None:
        return None
    names = {_plain(name) for name in _NAME.findall(text)}
    fits = sorted(
        ((len(s.names & names), s.line) for s in statements if any(kind in call for call in s.calls)), reverse=True
    )
    best = [line for shared, line in fits if shared == fits[0][0]]
    return best[0] if len(best) == 1 and (fits[0][0] or len(fits) == 1) else None


def _plain(name: str) -> str:
    """A name of the generated source as the kernel has it: without the number of a copy, or ``_desc`` of a map."""
    return _SUFFIX.sub("", name)


def _kernel_of(source: str, library: str) -> tuple[str | None, tuple[Statement, ...]]:
    """The file of the kernel, and the statements of the function that has all lines which directives name."""
    named: dict[str, list[int]] = {}
    for text in source.splitlines():
        if (given := _LINE.match(text)) and not given["path"].startswith(library):
            named.setdefault(given["path"], []).append(int(given["line"]))
    for path, lines in named.items():
        try:
            tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue
        around = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and _covers(f, lines)]
        if around:
            inner = min(around, key=lambda f: (f.end_lineno or f.lineno) - f.lineno)
            return path, tuple(_statements(inner))
    return None, ()


def _covers(function: ast.FunctionDef, lines: Iterable[int]) -> bool:
    first = min((d.lineno for d in function.decorator_list), default=function.lineno)
    return all(first <= line <= (function.end_lineno or function.lineno) for line in lines)


def _statements(function: ast.FunctionDef) -> Iterator[Statement]:
    for node in ast.walk(function):
        if isinstance(node, ast.For):
            names = frozenset(_names(node.target))
            yield Statement(node.lineno, names | frozenset(_names(node.iter)), frozenset(), names)
        elif isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.AnnAssign):
            yield Statement(node.lineno, frozenset(_names(node)), frozenset(_calls(node)))


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _calls(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
