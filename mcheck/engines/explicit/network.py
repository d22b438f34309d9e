"""An execution as a networkx graph: a node for every event, an edge for every pair of a relation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mcheck.answers.result import State
from mcheck.answers.step_text import text_of
from mcheck.answers.witnesses import object_at, step_effect
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.engines.explicit.candidate_check import Settled
from mcheck.events import relations
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared
from mcheck.events.structure import Node
from mcheck.findings.trace import Reads, Writes

if TYPE_CHECKING:
    import networkx as nx

STATIC = ("po", "rmw", "addr", "data", "ctrl", "issue")
"""The relations that do not depend on choices; the chosen ones, fr, and the edges of a violated axiom are added."""


def network(prepared: Prepared, candidate: Candidate, settled: Settled, *, model: str, state: State) -> nx.MultiDiGraph:
    """The graph of an execution.

    Its attributes are the test, the model, the final state and, of a forbidden execution, the violated axiom with the
    edges that show it.
    """
    import networkx as nx

    failed = settled.violation
    graph = nx.MultiDiGraph(
        name=prepared.s.program.name,
        model=model,
        state=dict(state),
        axiom=failed.axiom if failed is not None else None,
        cycle=[(s.source, s.target, s.kind) for s in failed.steps] if failed is not None else [],
    )
    for node in prepared.s.nodes:
        graph.add_node(node.index, **_event(prepared, candidate, node))
    for name, rows in _relations(prepared, settled):
        graph.add_edges_from((i, j, name) for i, row in enumerate(rows) for j in bits.bits(row))
    return graph


def _event(prepared: Prepared, candidate: Candidate, node: Node) -> dict[str, Any]:
    """The attributes of a node: its thread, instruction, line, tags of cat, and its effect on which object."""
    s, source = prepared.s, node.source
    effect = step_effect(s, prepared.valuation(candidate), node)
    initial = node.initial if source is None and isinstance(node.initial, int) else None
    return {
        "thread": "" if source is None else s.thread(node).name,
        "instruction": "" if source is None else text_of(source.op),
        "line": source.op.span.line if source is not None and source.op.span is not None else 0,
        "sets": ("IW", "M", "W") if source is None else tuple(sorted(source.tags)),
        "object": object_at(s, node) if node.size else "",
        "value": effect.value if isinstance(effect, Reads | Writes) else initial,
    }


def _relations(prepared: Prepared, settled: Settled) -> Iterator[tuple[str, Rows]]:
    chosen = settled.relations
    steps = settled.violation.steps if settled.violation is not None else ()
    shown = {s.kind.removesuffix("^-1") for s in steps} & (relations.RELATIONS.keys() | relations.SHARED.keys())
    for name in (*STATIC, *sorted(shown.difference(STATIC))):
        if name not in chosen:
            yield name, relations.relation_rows(prepared.s, name)
    yield from sorted(chosen.items())
    none = bits.empty(prepared.n)
    yield (
        "fr",
        bits.minus(
            bits.compose(bits.inverse(chosen.get("rf", none)), chosen.get("co", none)), bits.identity(prepared.n)
        ),
    )
