"""The shapes of a picture in drawing order, independent of the format. Colours are names."""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.report.picture.layout import LINE, PAD, SMALL, Layout, Line, Point, Rect

LIGHT = {
    "paper": "#ffffff", "ink": "#111827", "faint": "#4b5563", "panel": "#f3f4f6", "async": "#ede9fe", "box": "#ffffff",
    "rule": "#9ca3af", "read": "#dbeafe", "write": "#dcfce7", "update": "#fef3c7", "fence": "#f3e8ff",
    "mark": "#b91c1c",
    "po": "#6b7280", "rf": "#b91c1c", "co": "#1d4ed8", "fr": "#a16207", "issue": "#7c3aed", "complete": "#0f766e",
    "phase": "#15803d", "barrier": "#475569", "sync_fence": "#be185d", "observed": "#0f766e", "race": "#be123c",
    "other": "#52525b", "band": "#d1fae5",
}  # fmt: skip
"""The colours by name, on a white background."""

DRAWN = ("po", "rf", "co", "fr", "issue", "complete", "phase", "barrier", "sync_fence", "observed", "race")
"""Edges with a colour of their own."""

FILLS = {
    "read": "read",
    "write": "write",
    "update": "update",
    "fence": "fence",
    "proxy-fence": "fence",
    "init": "write",
}
FILLS |= {"signal": "band", "wait": "band", "mbarrier": "band"}
DASHES = {"barrier": "6 4", "data": "2 4", "issue": "7 3", "sync_fence": "9 3 2 3", "race": "5 4"}
THIN, THICK = 1.5, 3.4
"""The width of edges, and of those in a violating cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A rectangle with rounded corners. ``fill`` and ``stroke`` are colours, ``dash`` the dash lengths."""

    rect: Rect
    fill: str
    radius: int = 6
    stroke: str | None = None
    weight: str = "1"
    dash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A polyline with rounded corners; ``dim`` if another one is emphasised."""

    points: tuple[Point, ...]
    color: str
    dash: str = ""
    thick: bool = False
    dim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """An arrow head."""

    corners: tuple[tuple[float, float], ...]
    color: str
    dim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A line of text that begins at ``x`` on the base line ``y``; ``turned`` by 90 degrees. Small is 10 px, else 12."""

    x: int
    y: int
    text: str
    color: str = "ink"
    bold: bool = False
    small: bool = False
    turned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of shapes with a description."""

    about: str
    parts: tuple[Frame | Text, ...]


Shape = Frame | Way | Head | Text | Group


def shapes(layout: Layout) -> list[Shape]:
    """The shapes of a picture, from back to front."""
    out: list[Shape] = []
    for panel, column in zip(layout.panels, layout.grid.columns, strict=True):
        out.append(Frame(rect=panel, fill="async" if column.asynchronous else "panel"))
    out += _bands(layout)
    telling = any(line.route.edge.violated for line in layout.lines)
    for line in sorted(layout.lines, key=lambda x: x.route.edge.violated):
        out += _edge(line, dim=telling and not line.route.edge.violated)
    out += _boxes(layout)
    for line in layout.lines:
        out += _edge_label(line)
    for k, label in enumerate(layout.caption):
        out.append(_text(label.rect, label.text, bold=k == 0))
    for label in layout.heads:
        out.append(_text(label.rect, label.text, bold=True, color="faint"))
    for kind, label in layout.legend:
        y = label.rect.y + label.rect.height // 2
        points = ((label.rect.x - 44, y), (label.rect.x - 10, y))
        out.append(Way(points=points, color=color_of(kind), dash=DASHES.get(kind, "")))
        out.append(_head(points, kind))
        out.append(_text(label.rect, label.text, color="faint", small=True))
    return out


def color_of(kind: str) -> str:
    """The colour of an edge."""
    return kind if kind in DRAWN else "other"


def _text(rect: Rect, text: str, *, color: str = "ink", bold: bool = False, small: bool = False) -> Text:
    return Text(x=rect.x, y=rect.y + (10 if small else 12), text=text, color=color, bold=bold, small=small)


def _bands(layout: Layout) -> list[Shape]:
    out: list[Shape] = []
    for placed in layout.bands:
        label = placed.label.rect
        frame = Frame(rect=placed.rect, fill="band", stroke="phase", radius=4)
        x, y = label.x + label.width // 2 + 4, label.y + label.height - 5
        text = Text(x=x, y=y, text=placed.label.text, small=True, turned=True)
        out.append(Group(about=f"{placed.band.barrier}, phase {placed.band.phase}", parts=(frame, text)))
    return out


def _boxes(layout: Layout) -> list[Shape]:
    out: list[Shape] = []
    for box, rect, texts, instruction in zip(
        layout.execution.boxes, layout.boxes, layout.texts, layout.instructions, strict=True
    ):
        stroke, weight = ("mark", "2.5") if box.marked else ("issue" if box.asynchronous else "rule", "1.2")
        dash = "5 3" if box.asynchronous and not box.marked else ""
        parts: list[Frame | Text] = [
            Frame(rect=rect, fill=FILLS.get(box.kind, "box"), stroke=stroke, weight=weight, dash=dash)
        ]
        y = rect.y + PAD - 3
        for text in texts:
            parts.append(_text(Rect(rect.x + PAD, y, 0, LINE), text, bold=True))
            y += LINE
        for text in instruction:
            parts.append(_text(Rect(rect.x + PAD, y, 0, SMALL), text, color="faint", small=True))
            y += SMALL
        proxy = f", {box.proxy} proxy" if box.proxy != "generic" else ""
        where = f", line {box.line}" if box.line else ""
        out.append(Group(about=f"{box.name}: {box.text}{proxy}{where}", parts=tuple(parts)))
    return out


def _edge(line: Line, *, dim: bool) -> list[Shape]:
    edge = line.route.edge
    way = Way(
        points=line.points,
        color=color_of(edge.kind),
        dash=DASHES.get(edge.kind, ""),
        thick=edge.violated,
        dim=dim,
    )
    out: list[Shape] = [way, _head(line.points, edge.kind, thick=edge.violated, dim=dim)]
    if edge.both:
        out.append(_head(tuple(reversed(line.points)), edge.kind, thick=edge.violated, dim=dim))
    return out


def _head(points: tuple[Point, ...], kind: str, *, thick: bool = False, dim: bool = False) -> Head:
    """The arrow head at the end of a line."""
    end, before = points[-1], next((p for p in reversed(points[:-1]) if p != points[-1]), points[-1])
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    size, half = (11, 5.0) if thick else (8, 3.5)
    base = (end[0] - ux * size, end[1] - uy * size)
    corners = (end, (base[0] - uy * half, base[1] + ux * half), (base[0] + uy * half, base[1] - ux * half))
    return Head(corners=corners, color=color_of(kind), dim=dim)


def _edge_label(line: Line) -> list[Shape]:
    if line.label is None:
        return []
    rect, edge = line.label.rect, line.route.edge
    color = color_of(edge.kind)
    frame = Frame(rect=rect, fill="paper", radius=3, stroke=color if edge.violated else None, weight=str(THIN))
    text = Text(x=rect.x + 3, y=rect.y + 10, text=line.label.text, color=color, bold=edge.violated, small=True)
    return [frame, text]
