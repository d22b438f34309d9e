"""The phrases of ``phrases.toml`` are gone from what people read."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PHRASES = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text(encoding="utf-8"))


@cache
def pages() -> list[tuple[str, str]]:
    """Texts for people, by their path: the documentation and the catalogue of findings."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "mcheck").rglob("*.md")]
    return [(str(f.relative_to(ROOT)), f.read_text(encoding="utf-8")) for f in sorted(files)]


@cache
def sources() -> list[tuple[str, str]]:
    """The modules of the package as text."""
    files = sorted((ROOT / "mcheck").rglob("*.py"))
    return [(str(f.relative_to(ROOT)), f.read_text(encoding="utf-8")) for f in files]


@cache
def messages() -> list[tuple[str, str]]:
    """The string literals of the package that are not docstrings, each with its place."""
    return [(f"{path}:{line}", text) for path, source in sources() for line, text in _literals(ast.parse(source))]


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.lineno, node.value


def where(phrase: str, texts: list[tuple[str, str]]) -> list[str]:
    """The places of a phrase, which may go over the end of a line."""
    pattern = re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE)
    return [place for place, text in texts if pattern.search(text)]


@pytest.mark.parametrize("phrase", PHRASES["everywhere"])
def test_nobody_writes(phrase: str) -> None:
    assert where(phrase, [*pages(), *sources()]) == [], f"write: {PHRASES['everywhere'][phrase]}"


@pytest.mark.parametrize("phrase", PHRASES["messages"])
def test_nobody_reads(phrase: str) -> None:
    assert where(phrase, [*pages(), *messages()]) == [], f"write: {PHRASES['messages'][phrase]}"


def test_the_search_finds_what_it_looks_for() -> None:
    assert where(r"\bfor ever\b", [("a", "it waits for\n    ever"), ("b", "forever")]) == ["a"]
    assert len(messages()) > 2000
