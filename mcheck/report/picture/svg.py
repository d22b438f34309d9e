"""An execution as SVG: one file, no scripts, no fonts to fetch; light and dark by the viewer's preference."""

from __future__ import annotations

from html import escape

from mcheck.graph.execution import Execution
from mcheck.report.picture.layout import Point, lay_out
from mcheck.report.picture.shapes import LIGHT, Frame, Group, Head, Shape, Text, Way, shapes

DARK = {
    "paper": "#111318", "ink": "#e5e7eb", "faint": "#9ca3af", "panel": "#1b1f27", "async": "#262038", "box": "#14171d",
    "rule": "#6b7280", "read": "#172a4a", "write": "#12331f", "update": "#3a2d0c", "fence": "#2d1f42",
    "mark": "#f87171",
    "po": "#9ca3af", "rf": "#f87171", "co": "#7aa2ff", "fr": "#facc15", "issue": "#b794f6", "complete": "#2dd4bf",
    "phase": "#4ade80", "barrier": "#a8b3c4", "sync_fence": "#f472b6", "other": "#c4c4cc", "band": "#12362b",
}  # fmt: skip
CLASSES = {"panel": "panel", "async": "apanel", "paper": "pill"}
"""Fills that the style sheet has by class."""


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
    parts += map(_shape, shapes(layout))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _described(execution: Execution) -> str:
    cycle = [f"The axiom fails by: {execution.explanation()}."] if execution.walk else []
    return " ".join([*cycle, *(f"{line}." for line in execution.describe())])


def _shape(shape: Shape) -> str:
    match shape:
        case Group(about=about, parts=parts):
            return f"<g><title>{escape(about)}</title>{''.join(map(_shape, parts))}</g>"
        case Frame():
            return _frame(shape)
        case Way():
            return _way(shape)
        case Head(corners=corners):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
            dim = ' class="dim"' if shape.dim else ""
            return f'<polygon{dim} fill="var(--{shape.color})" points="{points}"/>'
        case Text():
            return _text(shape)


def _frame(frame: Frame) -> str:
    rect, known = frame.rect, CLASSES.get(frame.fill)
    mark = f' class="{known}"' if known else ""
    more = "" if known else f' fill="var(--{frame.fill})"'
    if frame.stroke:
        more += f' stroke="var(--{frame.stroke})" stroke-width="{frame.weight}"'
    if frame.dash:
        more += f' stroke-dasharray="{frame.dash}"'
    place = f'x="{rect.x}" y="{rect.y}" width="{rect.width}" height="{rect.height}"'
    return f'<rect {place} rx="{frame.radius}"{mark}{more}/>'


def _way(way: Way) -> str:
    mark = "e v" if way.thick else "e dim" if way.dim else "e"
    dash = f' stroke-dasharray="{way.dash}"' if way.dash else ""
    return f'<path class="{mark}" stroke="var(--{way.color})"{dash} d="{_rounded(way.points)}"/>'


def _text(text: Text) -> str:
    classes = [*("s" * text.small), *("b" * text.bold), *("f" * (text.color == "faint"))]
    mark = f' class="{" ".join(classes)}"' if classes else ""
    fill = "" if text.color in ("ink", "faint") else f' style="fill:var(--{text.color})"'
    turn = f' transform="rotate(-90 {text.x} {text.y})"' if text.turned else ""
    return f'<text x="{text.x}" y="{text.y}"{mark}{turn}{fill}>{escape(text.text)}</text>'


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
