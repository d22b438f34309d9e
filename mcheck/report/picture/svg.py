"""An execution as SVG: one file, no scripts, no fonts to fetch; light and dark by the viewer's preference."""

from __future__ import annotations

from html import escape

from mcheck.graph.execution import Execution
from mcheck.report.picture.layout import LINE, PAD, SMALL, Layout, Line, Point, Rect, lay_out

LIGHT = {
    "paper": "#ffffff", "ink": "#111827", "faint": "#4b5563", "panel": "#f3f4f6", "async": "#ede9fe", "box": "#ffffff",
    "rule": "#9ca3af", "read": "#dbeafe", "write": "#dcfce7", "update": "#fef3c7", "fence": "#f3e8ff",
    "mark": "#b91c1c",
    "po": "#6b7280", "rf": "#b91c1c", "co": "#1d4ed8", "fr": "#a16207", "issue": "#7c3aed", "complete": "#0f766e",
    "phase": "#15803d", "barrier": "#475569", "sync_fence": "#be185d", "other": "#52525b", "band": "#d1fae5",
}  # fmt: skip
DARK = {
    "paper": "#111318", "ink": "#e5e7eb", "faint": "#9ca3af", "panel": "#1b1f27", "async": "#262038", "box": "#14171d",
    "rule": "#6b7280", "read": "#172a4a", "write": "#12331f", "update": "#3a2d0c", "fence": "#2d1f42",
    "mark": "#f87171",
    "po": "#9ca3af", "rf": "#f87171", "co": "#7aa2ff", "fr": "#facc15", "issue": "#b794f6", "complete": "#2dd4bf",
    "phase": "#4ade80", "barrier": "#a8b3c4", "sync_fence": "#f472b6", "other": "#c4c4cc", "band": "#12362b",
}  # fmt: skip
DRAWN = ("po", "rf", "co", "fr", "issue", "complete", "phase", "barrier", "sync_fence")
FILLS = {
    "read": "read",
    "write": "write",
    "update": "update",
    "fence": "fence",
    "proxy-fence": "fence",
    "init": "write",
}
FILLS |= {"signal": "band", "wait": "band", "mbarrier": "band"}
DASHES = {"barrier": "6 4", "data": "2 4", "issue": "7 3", "sync_fence": "9 3 2 3"}


def _variables(colors: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colors.items())


STYLE = (
    f".mcx{{{_variables(LIGHT)}background:var(--paper)}}"
    ".mcx{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    f"@media(prefers-color-scheme:dark){{.mcx{{{_variables(DARK)}}}}}"
    ".mcx text{fill:var(--ink);white-space:pre}.mcx .s{font-size:10px}.mcx .f{fill:var(--faint)}"
    ".mcx .b{font-weight:600}"
    ".mcx .e{fill:none;stroke-width:1.5}.mcx .v{stroke-width:3.4}.mcx .dim{opacity:.5}"
    ".mcx .pill{fill:var(--paper)}.mcx .panel{fill:var(--panel)}.mcx .apanel{fill:var(--async)}"
)
"""For the picture alone, or once for a page that holds many."""


def draw(execution: Execution, *, prefix: str = "", style: bool = True) -> str:
    """The picture. ``prefix`` makes its identifiers unique in a page; ``style`` is left out where the page has it."""
    layout = lay_out(execution)
    title, about = f"{prefix}t", f"{prefix}d"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="mcx" role="img"',
        f' aria-labelledby="{title} {about}" width="{layout.width}" height="{layout.height}"',
        f' viewBox="0 0 {layout.width} {layout.height}">',
        f'<title id="{title}">{escape(execution.title)}</title>',
        f'<desc id="{about}">{escape(_described(execution))}</desc>',
    ]
    if style:
        parts.append(f"<style>{STYLE}</style>")
        parts.append(f'<rect width="{layout.width}" height="{layout.height}" fill="var(--paper)"/>')
    parts += _panels(layout)
    parts += _bands(layout)
    telling = any(line.route.edge.violated for line in layout.lines)
    for line in sorted(layout.lines, key=lambda x: x.route.edge.violated):
        parts += _edge(line, dim=telling and not line.route.edge.violated)
    parts += _boxes(layout)
    for line in layout.lines:
        parts += _edge_label(line)
    for k, label in enumerate(layout.caption):
        parts.append(_text(label.rect, label.text, "b" if k == 0 else ""))
    for label in layout.heads:
        parts.append(_text(label.rect, label.text, "b f"))
    for kind, label in layout.legend:
        y = label.rect.y + label.rect.height // 2
        points = ((label.rect.x - 44, y), (label.rect.x - 10, y))
        parts += [_path(points, kind, ""), _arrow(points, kind), _text(label.rect, label.text, "s f", small=True)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _described(execution: Execution) -> str:
    cycle = [f"The axiom fails by: {', '.join(execution.cycle)}."] if execution.cycle else []
    return " ".join([*cycle, *(f"{line}." for line in execution.describe())])


def _text(rect: Rect, text: str, classes: str = "", *, small: bool = False) -> str:
    drop = 10 if small else 12
    mark = f' class="{classes}"' if classes else ""
    return f'<text x="{rect.x}" y="{rect.y + drop}"{mark}>{escape(text)}</text>'


def _rect(rect: Rect, classes: str = "", *, radius: int = 6, more: str = "") -> str:
    mark = f' class="{classes}"' if classes else ""
    return f'<rect x="{rect.x}" y="{rect.y}" width="{rect.width}" height="{rect.height}" rx="{radius}"{mark}{more}/>'


def _panels(layout: Layout) -> list[str]:
    return [
        _rect(panel, "apanel" if column.asynchronous else "panel")
        for panel, column in zip(layout.panels, layout.grid.columns, strict=True)
    ]


def _bands(layout: Layout) -> list[str]:
    out = []
    for placed in layout.bands:
        rect, label = placed.rect, placed.label.rect
        about = f"{placed.band.barrier}, phase {placed.band.phase}"
        x, y = label.x + label.width // 2 + 4, label.y + label.height - 5
        out.append(
            f"<g><title>{escape(about)}</title>"
            + _rect(rect, more=' fill="var(--band)" stroke="var(--phase)" stroke-width="1"', radius=4)
            + f'<text x="{x}" y="{y}" class="s" transform="rotate(-90 {x} {y})">{escape(placed.label.text)}</text></g>'
        )
    return out


def _boxes(layout: Layout) -> list[str]:
    out = []
    for box, rect, texts, instruction in zip(
        layout.execution.boxes, layout.boxes, layout.texts, layout.instructions, strict=True
    ):
        fill = FILLS.get(box.kind, "box")
        stroke, width = ("mark", "2.5") if box.marked else ("issue" if box.asynchronous else "rule", "1.2")
        proxy = f", {box.proxy} proxy" if box.proxy != "generic" else ""
        where = f", line {box.line}" if box.line else ""
        dash = ' stroke-dasharray="5 3"' if box.asynchronous and not box.marked else ""
        parts = [
            f"<g><title>{escape(f'{box.name}: {box.text}{proxy}{where}')}</title>",
            _rect(rect, more=f' fill="var(--{fill})" stroke="var(--{stroke})" stroke-width="{width}"{dash}'),
        ]
        y = rect.y + PAD - 3
        for text in texts:
            parts.append(_text(Rect(rect.x + PAD, y, 0, LINE), text, "b"))
            y += LINE
        for text in instruction:
            parts.append(_text(Rect(rect.x + PAD, y, 0, SMALL), text, "s f", small=True))
            y += SMALL
        out.append("".join(parts) + "</g>")
    return out


def _color(kind: str) -> str:
    return f"var(--{kind if kind in DRAWN else 'other'})"


def _edge(line: Line, *, dim: bool) -> list[str]:
    edge = line.route.edge
    classes = "v" if edge.violated else "dim" if dim else ""
    out = [_path(line.points, edge.kind, classes), _arrow(line.points, edge.kind, classes)]
    if edge.both:
        out.append(_arrow(tuple(reversed(line.points)), edge.kind, classes))
    return out


def _path(points: tuple[Point, ...], kind: str, classes: str) -> str:
    dash = f' stroke-dasharray="{DASHES[kind]}"' if kind in DASHES else ""
    mark = f"e {classes}".strip()
    return f'<path class="{mark}" stroke="{_color(kind)}"{dash} d="{_rounded(points)}"/>'


def _rounded(points: tuple[Point, ...], radius: int = 7) -> str:
    out = [f"M{points[0][0]} {points[0][1]}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(at, before, radius), _towards(at, after, radius)
        out.append(f"L{near[0]} {near[1]}Q{at[0]} {at[1]} {far[0]} {far[1]}")
    return "".join([*out, f"L{points[-1][0]} {points[-1][1]}"])


def _towards(a: Point, b: Point, length: int) -> Point:
    """The point ``length`` (at most half of the way) from a to b."""
    whole = max(abs(b[0] - a[0]) + abs(b[1] - a[1]), 1)
    step = min(length, whole // 2)
    return a[0] + (b[0] - a[0]) * step // whole, a[1] + (b[1] - a[1]) * step // whole


def _arrow(points: tuple[Point, ...], kind: str, classes: str = "") -> str:
    """The head at the end of a way."""
    end, before = points[-1], next((p for p in reversed(points[:-1]) if p != points[-1]), points[-1])
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    size, half = (11, 5.0) if classes == "v" else (8, 3.5)
    base = (end[0] - ux * size, end[1] - uy * size)
    corners = (end, (base[0] - uy * half, base[1] + ux * half), (base[0] + uy * half, base[1] - ux * half))
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    dim = ' class="dim"' if classes == "dim" else ""
    return f'<polygon{dim} fill="{_color(kind)}" points="{text}"/>'


def _edge_label(line: Line) -> list[str]:
    if line.label is None:
        return []
    rect, kind = line.label.rect, line.route.edge.kind
    bold = "s b" if line.route.edge.violated else "s"
    x, y = rect.x + 3, rect.y + 10
    frame = f' stroke="{_color(kind)}" stroke-width="1.5"' if line.route.edge.violated else ""
    return [
        _rect(rect, "pill", radius=3, more=frame),
        f'<text x="{x}" y="{y}" class="{bold}" style="fill:{_color(kind)}">{escape(line.label.text)}</text>',
    ]
