"""The phrases of ``phrases.toml`` are gone from what people read."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

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


def _literals(path: str, source: str) -> Iterator[tuple[str, str]]:
    """The string literals of a module that are not docstrings, each with its place."""
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield f"{path}:{node.lineno}", node.value


def find(phrases: Mapping[str, str], texts: Iterable[tuple[str, str]]) -> list[str]:
    """Where these phrases are, which may go over the end of a line, and what to write instead: all are looked for at
    once, for that takes as long as one of them alone.
    """
    ways = {re.compile(phrase.lower().replace(" ", r"\s+")): instead for phrase, instead in phrases.items()}
    some = re.compile("|".join(way.pattern for way in ways))
    return [
        f"{place}: '{match[0]}', write: {next(instead for way, instead in ways.items() if way.fullmatch(match[0]))}"
        for place, text in texts
        for match in some.finditer(text.lower())
    ]


def messages(phrases: Mapping[str, str], modules: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The string literals of those modules that have one of these phrases in some literal, docstring or comment:
    parsing takes a hundred times as long as searching.
    """
    for path, source in modules:
        if find(phrases, [(path, BETWEEN.sub("", source))]):
            yield from _literals(path, source)


BETWEEN = re.compile(r"[\"']\s*[rf]?[\"']")
"""Between two literals that make one."""


def test_nobody_writes() -> None:
    assert find(PHRASES["everywhere"], [*pages(), *sources()]) == []


def test_nobody_reads() -> None:
    assert find(PHRASES["messages"], [*pages(), *messages(PHRASES["messages"], sources())]) == []


def test_the_search_finds_what_it_looks_for() -> None:
    texts = [("a", "it waits for\n    Ever, and\ntakes for granted"), ("b", "forever")]
    found = find({r"\bfor ever\b": "forever", r"\btak(e|es) for granted\b": "assume"}, texts)
    assert found == ["a: 'for\n    ever', write: forever", "a: 'takes for granted', write: assume"]


def test_messages_are_literals_that_may_be_in_parts() -> None:
    module = '"""It waits for ever."""\nfail(\n    "it waits for "\n    f"ever at {place}"\n)  # for ever\n'
    phrases = {r"\bfor ever\b": "forever"}
    assert find(phrases, messages(phrases, [("m.py", module), ("n.py", "'it'")])) == [
        "m.py:3: 'for ever', write: forever"
    ]
