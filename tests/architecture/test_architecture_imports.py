"""The import graph: no module in a cycle, no engine on another, the language below the engines, reports above them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

PACKAGE = Path(__file__).parents[2] / "mcheck"
ENGINES = ("explore", "solve", "kernel", "simulate")
ABOVE = (
    *("report", "commands", "check", "run", "policy", "cli", "testing", "sketch", "generate", "executions"),
    *("api", "store", "machines"),
)
BELOW = (
    *("isa", "executor", "cat", "program", "syntax", "graph", "plans", "events", "algebra"),
    *("candidates", "answers", "questions", "findings", "views"),
)


@cache
def imports() -> nx.DiGraph:
    """Who imports whom, in functions and for types as well."""
    files = {_name(p): p for p in PACKAGE.rglob("*.py")}
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            for target in _targets(node):
                while target not in files and "." in target:
                    target = target.rpartition(".")[0]
                if target in files and target != name:
                    graph.add_edge(name, target)
    return graph


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(), level=0):
            return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _room(module: str) -> str:
    return [*module.split("."), ""][1]


def test_the_graph_is_that_of_the_package() -> None:
    assert imports().number_of_nodes() > 200
    assert imports().has_edge("mcheck.explore.engine", "mcheck.answers.result")


def test_no_module_is_in_a_cycle() -> None:
    assert [sorted(c) for c in nx.strongly_connected_components(imports()) if len(c) > 1] == []


def test_no_engine_imports_another() -> None:
    crossing = [(a, b) for a, b in imports().edges if _room(a) != _room(b) and {_room(a), _room(b)} <= set(ENGINES)]
    assert crossing == []


@pytest.mark.parametrize("room", BELOW)
def test_what_engines_stand_on_knows_none(room: str) -> None:
    found = [(a, b) for a, b in imports().edges if _room(a) == room and _room(b) in (*ENGINES, *ABOVE)]
    assert found == []


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_know_nothing_of_who_asks(engine: str) -> None:
    assert [(a, b) for a, b in imports().edges if _room(a) == engine and _room(b) in ABOVE] == []


def test_only_the_policy_and_tools_choose_engines() -> None:
    """Commands, suites and reports go through ``mcheck.policy``; ``exec`` runs one execution, and asks no engine."""
    askers = tuple(room for room in ABOVE if room != "policy")
    engines = ("explore", "solve", "kernel")
    found = [(a, b) for a, b in imports().edges if _room(a) in askers and _room(b) in engines]
    assert found == []
