"""The rooms of ``mcheck/`` in levels, and the arrows between them, read off the imports.

A module imports its own room and rooms of lower levels, nothing else; inside a room no import leads round in a circle.
The engines are a room each, so that none imports another. ``python -m tests.architecture`` prints rooms and arrows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

PACKAGE = Path(__file__).parents[2] / "mcheck"

LEVELS: tuple[dict[str, str], ...] = (
    {"base": "errors, phrases, frozen records, files, streams, the budget of an answer"},
    {
        "ir": "programs, operations, expressions, memory, data-flow facts",
        "cat": "the language of models: parser, tags, tapes, evaluators, library",
        "errors": "the public name of base.errors",
    },
    {
        "isa": "the instruction table: families, operand types, decoding",
        "semantics": "what an operation does to bytes, concretely and as terms",
        "findings": "the catalogue of findings as data, suppression, repair",
    },
    {
        "effects": "preconditions and footprints of operations",
        "frontend": "from text to programs and modules: litmus, ptx, cuda",
    },
    {
        "events": "execution graphs, paths, base relations, the choices of an execution",
        "simt": "concrete execution of PTX modules, warp by warp, to the program of one cluster; emitting sketches",
    },
    {"answers": "the answer to a question, witnesses, final states, parts of messages"},
    {
        "engines.search": "the search that explicit and z3 share",
        "engines.protocol": "stateless model checking with dynamic partial order reduction",
        "engines.concrete": "one fair execution with real data",
    },
    {
        "engines.explicit": "every execution of a program, enumerated",
        "engines.z3": "event structures as formulas",
        "proofs": "proofs for every N, on the protocol engine",
    },
    {"checking": "question, engine choice, the driver of every N, runs, cache, processes, machines"},
    {
        "report": "text, JSON, SARIF, pictures, documents",
        "ptx": "public: checking PTX modules from Python",
        "executions": "public: executions as networkx graphs",
    },
    {
        "tools": "command line, language server, playground, generator of tests",
        "api": "public: the commands as functions",
        "sketch": "public: kernel sketches written in Python",
        "integrations": "public: launches from Triton, Gluon, TileLang, CUDA; recording them without a GPU",
        "pytest_plugin": "public: litmus tests under pytest",
    },
    {
        "__main__": "python -m mcheck",
        "triton": "public: kernels of Triton under pytest, without a GPU",
    },
)

LEVEL = {room: k for k, level in enumerate(LEVELS) for room in level}


@cache
def imports() -> nx.DiGraph:
    """Who imports whom, in functions and for types as well."""
    files = {_name(p): p for p in PACKAGE.rglob("*.py")}
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        for node in _statements(ast.parse(path.read_text())):
            for target in _targets(node):
                while target not in files and "." in target:
                    target = target.rpartition(".")[0]
                if target in files and target != name:
                    graph.add_edge(name, target)
    return graph


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a module, those of its functions and classes too: an import is nowhere else."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner
            yield from _statements(inner)


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


def room_of(module: str) -> str:
    """The room of a module; the empty word for ``mcheck`` itself, which holds the version."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] == ["engines"] else 1])


def arrows() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The imports from room to room."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for a, b in sorted(imports().edges):
        pair = room_of(a), room_of(b)
        if pair[0] != pair[1] and pair[1]:
            found.setdefault(pair, []).append((a, b))
    return found


def folders() -> dict[str, list[str]]:
    """The folders of each room, with the first sentence of what they say of themselves."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("__init__.py")):
        name = _name(path)
        room = room_of(name)
        if name.removeprefix("mcheck.") in (room, "mcheck", "engines"):
            continue
        about = (ast.get_docstring(ast.parse(path.read_text())) or "").split(". ")[0].split("\n\n")[0]
        within = name.removeprefix(f"mcheck.{room}.").replace(".", "/")
        found.setdefault(room, []).append(f"{within}: {' '.join(about.split()).rstrip('.:')}")
    return found


def plan() -> str:
    """Rooms by level with their folders and the rooms that each imports, as text."""
    targets: dict[str, list[str]] = {}
    for (a, b), pairs in arrows().items():
        targets.setdefault(a, []).append(f"{b} ({len(pairs)})")
    sizes: dict[str, int] = {}
    for module in imports():
        sizes[room_of(module)] = sizes.get(room_of(module), 0) + 1
    lines, inside = [], folders()
    for k, level in reversed([*enumerate(LEVELS)]):
        lines.append(f"level {k}")
        for room, what in level.items():
            lines.append(f"  {room:18} {sizes.get(room, 0):4} files  {what}")
            lines.extend(f"  {'':18}   {folder}" for folder in inside.get(room, []))
            lines.extend([f"  {'':18}   -> {', '.join(targets[room])}"] if room in targets else [])
    return "\n".join(lines)
