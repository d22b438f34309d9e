"""Why a state is forbidden: whether the edges that a report shows are those of one well-formed execution.

``python -m tests.engines.explicit.explained PATH...`` looks at the forbidden states of all tests in files and folders,
as their pages show them, and counts what is wrong with an explanation.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from time import perf_counter

import networkx as nx

from mcheck.answers.exploration import Forbidden
from mcheck.base.errors import McheckError
from mcheck.cat import load_model
from mcheck.checking.policy.executions import executions
from mcheck.checking.policy.question import Question
from mcheck.checking.run.single import load_program

SHOWN = 6
"""Forbidden states of one test, as many as its page draws."""

LARGEST = (8, 16)
"""Threads and operations of the largest program whose page lists executions."""


def faults(found: Forbidden) -> Iterator[str]:
    """What is wrong with the explanation of a forbidden state, each fault by its kind and where."""
    graph, drawn = found.network, found.execution
    assert graph is not None
    assert drawn is not None
    if not found.axiom:
        yield "no axiom"
    if not graph.graph["cycle"]:
        yield "no edge"
    for a, b, kind in graph.graph["cycle"]:
        if a == b:
            yield f"a step from an event to itself: {kind}"
        backwards = kind.endswith("^-1")
        edge = (b, a) if backwards else (a, b)
        if not graph.has_edge(*edge, kind.removesuffix("^-1")):
            yield f"an edge that the execution does not have: {kind}"
    yield from _steps_of_boxes(found)
    yield from _coherence(graph)


def _steps_of_boxes(found: Forbidden) -> Iterator[str]:
    """The steps as they are written: between boxes that are there, along an edge that is drawn as a violation."""
    drawn = found.execution
    assert drawn is not None
    index = {box.name: k for k, box in enumerate(drawn.boxes)}
    violated = {(e.source, e.target) for e in drawn.edges if e.violated}
    violated |= {(e.target, e.source) for e in drawn.edges if e.violated and e.both}
    for step in drawn.cycle:
        ends, _, kind = step.partition(" by ")
        first, _, second = ends.partition(" \N{RIGHTWARDS ARROW} ")
        a, b = index.get(first), index.get(second)
        if a is None or b is None:
            yield f"a step of what is not in the picture: {step}"
        elif a == b:
            if drawn.boxes[a].kind != "update":
                yield f"a box comes after itself: {kind}"
            elif (a, a) not in violated:
                yield f"an edge that is not in the picture: {kind}"
        elif not {(a, b), (b, a)} & violated:
            yield f"an edge that is not in the picture: {kind}"


def _coherence(graph: nx.MultiDiGraph) -> Iterator[str]:
    """co orders all writes of a location, initial ones first, and the last of them is what the state says."""
    co = nx.DiGraph((a, b) for a, b, kind in graph.edges(keys=True) if kind == "co")
    if not nx.is_directed_acyclic_graph(co):
        yield "a circle of co"
        return
    writes = {node for node, data in graph.nodes(data=True) if "W" in data["sets"] and data["object"]}
    for first in sorted(node for node in writes if "IW" in graph.nodes[node]["sets"]):
        nodes = [first, *co.successors(first)] if first in co else [first]
        writes -= set(nodes)
        order = list(nx.topological_sort(co.subgraph(nodes))) if first in co else nodes
        if not all(co.has_edge(a, b) for a, b in pairwise(order)):
            yield "writes of a location that co does not order"
            continue
        final = graph.graph["state"].get(graph.nodes[first]["object"])
        value = graph.nodes[order[-1]]["value"]
        if isinstance(final, int) and isinstance(value, int) and final not in (value, value - 2**32):
            yield "the last write of a location is not what the state says"
    if writes:
        yield "a write that no initial one comes before"


def explained(path: str | Path, model: str | None = None, *, timeout: float = 5, budget: float = 3) -> list[Forbidden]:
    """The forbidden states of a test that its page shows."""
    program = load_program(str(path))
    operations = sum(len(t.code) for t in program.threads)
    if len(program.threads) > LARGEST[0] or (program.condition.kind == "none" and operations > LARGEST[1]):
        return []
    asked = Question(timeout=timeout)
    read = load_model(model or program.model or "ptx-9.0")
    shown = executions(program, read, asked, forbidden=SHOWN, drawn=0, budget=budget, networks=True)
    return list(shown.forbidden)


def _task(path: str) -> tuple[str, int, list[tuple[str, str, tuple[str, ...]]]]:
    try:
        found = explained(path)
    except (McheckError, RecursionError):
        return path, 0, []
    wrong = [(fault, f.axiom, f.cycle) for f in found for fault in dict.fromkeys(faults(f))]
    return path, len(found), wrong


def main(paths: list[str]) -> int:
    """Counts over all tests in files and folders."""
    tests = sorted(str(t) for p in map(Path, paths) for t in ([p] if p.is_file() else p.rglob("*.litmus")))
    started, states, pages, kinds = perf_counter(), 0, set[str](), Counter[str]()
    with Pool(2) as pool:
        for path, shown, wrong in pool.imap(_task, tests, chunksize=4):
            states += shown
            for fault, axiom, cycle in wrong:
                kinds[fault] += 1
                pages.add(path)
                print(f"{path}: {fault}: {axiom}: {', '.join(cycle)}")
    for fault, count in kinds.most_common():
        print(f"{count:5}  {fault}")
    print(
        f"{len(tests)} tests, {states} forbidden states, {len(pages)} tests with a fault, "
        f"{perf_counter() - started:.0f} s"
    )
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
