"""Executions of a test as networkx graphs, for scripts and notebooks.

::

    import networkx as nx
    from mcheck.executions import executions

    for graph in executions("MP.litmus", model="ptx-9.0", forbidden=3):
        print(graph.graph["state"], graph.graph["axiom"] or "allowed")
        reads_from = [(w, r) for w, r, relation in graph.edges(keys=True) if relation == "rf"]

Nodes are events, with the attributes ``thread``, ``instruction``, ``line``, ``sets`` (the cat sets of the event),
``object`` and ``value``; edges are the pairs of relations, with the relation as key. The graph has the attribute
``state``; a forbidden one also the ``axiom`` that it violates and the ``cycle`` that shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcheck.checking.policy.executions import executions as shown
from mcheck.checking.policy.question import Question

if TYPE_CHECKING:
    import networkx as nx

    from mcheck.ir.program import Program

DEFAULT_MODEL = "ptx-9.0"


def executions(
    test: str | Path | Program,
    *,
    model: str | None = None,
    most: int = 100,
    forbidden: int = 0,
    profile: str = "ptx",
    unroll: int = 2,
    timeout: float | None = None,
) -> list[nx.MultiDiGraph]:
    """An execution of each allowed final state (up to ``most``), followed by executions of up to ``forbidden``
    forbidden states. ``test`` is a path, the text of a test, or a program from ``mcheck.api.load``.
    """
    from mcheck.checking.run.single import choose_model

    program = _program(test)
    found = shown(
        program,
        choose_model(model, program.model, program.path, program.model_span),
        Question(profile=profile, unroll=unroll, timeout=timeout),
        forbidden=forbidden,
        drawn=most,
        networks=True,
    )
    allowed = [g for g in (found.networks.get(o.state) for o in found.answer.outcomes) if g is not None]
    return allowed + [f.network for f in found.forbidden if f.network is not None]


def _program(test: str | Path | Program) -> Program:
    from mcheck.frontend.litmus import load, parse
    from mcheck.ir.program import Program

    if isinstance(test, Program):
        return test
    return parse(test, "test.litmus") if isinstance(test, str) and "\n" in test else load(str(test))
