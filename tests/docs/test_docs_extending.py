"""The table of the places that match on operations or kinds names those that the code has."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from mcheck.ir import ops

ROOT = Path(__file__).parents[2]
STEPS = (
    "mcheck/cat/",  # its kinds are those of values
    "mcheck/effects/generic_memory.py",
    "mcheck/engines/concrete/",
    "mcheck/engines/protocol/operations/",
    "mcheck/events/emit",
    "mcheck/isa/",
    "mcheck/simt/instructions/",
)
"""Where the steps of the list above the table are made, and what has other kinds."""
SEVERAL = 4
OPERATIONS = {name for name, it in vars(ops).items() if inspect.isclass(it) and issubclass(it, ops.Op)} - {"Op"}


def words_of(text: str) -> set[str]:
    """The names of operations and kinds in a text, wherever they stand."""
    return OPERATIONS.intersection(re.findall(r"\b[A-Z]\w+", text)).union(re.findall(r"\bKind\.\w+", text))


def names_of(tree: ast.AST) -> Iterator[str]:
    """The operations that a module asks for by ``isinstance`` or ``match``, and the kinds that it names."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]) | ast.MatchClass(cls=classes):
                names = (n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(classes))
                yield from OPERATIONS.intersection(names)
            case ast.Attribute(value=ast.Name(id="Kind"), attr=kind):
                yield f"Kind.{kind}"


def test_the_table_names_every_place_that_matches_on_several_operations_or_kinds() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(mcheck/[\w/]+\.py)` \| (.+) \|$", page, re.MULTILINE)
    texts = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in (ROOT / "mcheck").rglob("*.py")}
    several = [
        name
        for name, text in texts.items()
        if not name.startswith(STEPS)
        and re.search(r"\bops\b|mcheck\.ir|\bKind\.", text)
        and len(words_of(text)) >= SEVERAL  # parsing a module takes a hundred times as long
        and len(set(names_of(ast.parse(text)))) >= SEVERAL
    ]
    assert sorted(name for name, _ in rows) == sorted(several)
