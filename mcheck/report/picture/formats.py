"""Pictures in the format of a file name; DOT and GraphML by networkx."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from mcheck.base.errors import InputError
from mcheck.events.execution_graph import Execution

if TYPE_CHECKING:
    import networkx as nx

SUFFIXES = (".svg", ".pdf", ".tikz", ".dot", ".graphml")
COLORS = {"rf": "red", "co": "blue", "fr": "orange3", "issue": "purple", "complete": "darkgreen", "phase": "darkgreen"}


def picture(execution: Execution, path: str) -> str | bytes:
    """The execution in the format of the suffix of ``path``: text, or bytes for PDF."""
    if path.endswith(".svg"):
        from mcheck.report.picture.svg import draw

        return draw(execution)
    if path.endswith(".pdf"):
        from mcheck.report.picture.pdf import pdf

        return pdf(execution)
    if path.endswith(".tikz"):
        from mcheck.report.picture.tikz import tikz

        return tikz(execution)
    if path.endswith(".dot"):
        return dot(execution)
    if path.endswith(".graphml"):
        return graphml(execution)
    raise InputError(f"{path}: no picture has this ending", expected=", ".join(SUFFIXES))


def network(execution: Execution) -> nx.MultiDiGraph:
    """The execution as a networkx graph: boxes with columns and texts, edges with kinds."""
    import networkx as nx

    graph = nx.MultiDiGraph(name=execution.title)
    for box in execution.boxes:
        column = execution.columns[box.column]
        graph.add_node(
            box.name,
            kind=box.kind,
            thread=column.title,
            asynchronous=box.asynchronous,
            effect="; ".join(box.lines),
            instruction=box.text,
            proxy=box.proxy,
        )
    for edge in execution.edges:
        source, target = execution.boxes[edge.source].name, execution.boxes[edge.target].name
        graph.add_edge(source, target, key=edge.kind, relation=edge.kind, violated=edge.violated)
        if edge.both:
            graph.add_edge(target, source, key=edge.kind, relation=edge.kind, violated=edge.violated)
    return graph


def graphml(execution: Execution) -> str:
    """The execution as GraphML, for yEd, Gephi and networkx."""
    import networkx as nx

    out = BytesIO()
    nx.write_graphml_xml(network(execution), out, encoding="utf-8", prettyprint=True)
    return out.getvalue().decode("utf-8") + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def dot(execution: Execution) -> str:
    """The execution as DOT for graphviz, with a cluster per column."""
    lines = ["digraph execution {", f"  label={_quoted(execution.title)};", "  node [shape=box, fontname=monospace];"]
    for c, column in enumerate(execution.columns):
        members = [b for b in execution.boxes if b.column == c]
        lines.append(f"  subgraph cluster_{c} {{")
        lines.append(f"    label={_quoted(column.title)};")
        for box in members:
            style = ", style=dashed" if box.asynchronous else ""
            told = "\n".join([f"{box.name}: {box.lines[0]}", *box.lines[1:], box.text])
            lines.append(f"    {box.name} [label={_quoted(told)}{style}];")
        lines.append("  }")
    for edge in execution.edges:
        source, target = execution.boxes[edge.source].name, execution.boxes[edge.target].name
        parts = [f"color={COLORS.get(edge.kind, 'gray40')}"]
        if edge.kind != "po":
            parts.append(f"label={_quoted(edge.kind)}")
        if edge.violated:
            parts.append("penwidth=3")
        if edge.both:
            parts.append("dir=both")
        lines.append(f"  {source} -> {target} [{', '.join(parts)}];")
    return "\n".join([*lines, "}"]) + "\n"
