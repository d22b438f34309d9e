"""Executions as SVG: one file without scripts or external fonts; light and dark by the preference of the viewer.

Every shape has literal colour attributes, so that any converter draws it on white; the style sheet, whose rules
override attributes (SVG 2, 6.6), gives browsers the dark colours.
"""

from __future__ import annotations

from html import escape

from mcheck.events.execution_graph import Execution
from mcheck.report.picture.layout import Point, lay_out
from mcheck.report.picture.shapes import LIGHT, THICK, THIN, Frame, Group, Head, Shape, Text, Way, shapes

DARK = {
    "paper": "#111318", "ink": "#e5e7eb", "faint": "#9ca3af", "panel": "#1b1f27", "async": "#262038", "box": "#14171d",
    "rule": "#6b7280", "read": "#172a4a", "write": "#12331f", "update": "#3a2d0c", "fence": "#2d1f42",
    "mark": "#f87171",
    "po": "#9ca3af", "rf": "#f87171", "co": "#7aa2ff", "fr": "#facc15", "issue": "#b794f6", "complete": "#2dd4bf",
    "phase": "#4ade80", "barrier": "#a8b3c4", "sync_fence": "#f472b6", "observed": "#2dd4bf", "race": "#fb7185",
    "other": "#c4c4cc", "band": "#12362b",
}  # fmt: skip
FONT = "'DejaVu Sans Mono',ui-monospace,Menlo,Consolas,monospace"
"""The fonts are monospaced: the layout relies on it. The first is no alias, because CairoSVG reads no further."""


def _dark() -> str:
    """CSS rules for every colour: ``f-NAME`` for fills, ``s-NAME`` for strokes."""
    return "".join(f".mcx .f-{name}{{fill:{value}}}.mcx .s-{name}{{stroke:{value}}}" for name, value in DARK.items())


STYLE = f".mcx text{{white-space:pre}}@media(prefers-color-scheme:dark){{{_dark()}}}"
"""The style sheet of a picture, or of a page with many. It only has what browsers do not take from attributes:
converters and viewers outside browsers know neither variables nor media queries nor ``white-space``, and use the
attributes. ``xml:space`` is on the root for them, where Chromium ignores it."""


def ground(width: int | str, height: int | str) -> str:
    """The background of a stand-alone picture."""
    return f'<rect width="{width}" height="{height}"{_fill("paper")}/>'


def _fill(color: str) -> str:
    return f' class="f-{color}" fill="{LIGHT[color]}"'


def draw(execution: Execution, *, prefix: str = "", style: bool = True) -> str:
    """The picture as SVG. ``prefix`` makes its identifiers unique in a page; ``style``: include the style sheet."""
    layout = lay_out(execution)
    title, about = f"{prefix}t", f"{prefix}d"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="mcx" role="img" xml:space="preserve"',
        f' aria-labelledby="{title} {about}" font-family="{FONT}" font-size="12"',
        f' width="{layout.width}" height="{layout.height}"',
        f' viewBox="0 0 {layout.width} {layout.height}">',
        f'<title id="{title}">{escape(execution.title)}</title>',
        f'<desc id="{about}">{escape(_described(execution))}</desc>',
    ]
    if style:
        parts.append(f"<style>{STYLE}</style>")
        parts.append(ground(layout.width, layout.height))
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
            return f'<polygon{_fill(shape.color)}{_dimmed(shape.dim)} points="{points}"/>'
        case Text():
            return _text(shape)


def _dimmed(dim: bool) -> str:
    return ' opacity=".5"' if dim else ""


def _frame(frame: Frame) -> str:
    rect, classes, more = frame.rect, f"f-{frame.fill}", f' fill="{LIGHT[frame.fill]}"'
    if frame.stroke:
        classes += f" s-{frame.stroke}"
        more += f' stroke="{LIGHT[frame.stroke]}" stroke-width="{frame.weight}"'
    if frame.dash:
        more += f' stroke-dasharray="{frame.dash}"'
    place = f'x="{rect.x}" y="{rect.y}" width="{rect.width}" height="{rect.height}"'
    return f'<rect {place} rx="{frame.radius}" class="{classes}"{more}/>'


def _way(way: Way) -> str:
    line = (
        f'class="s-{way.color}" fill="none" stroke="{LIGHT[way.color]}" stroke-width="{THICK if way.thick else THIN}"'
    )
    dash = f' stroke-dasharray="{way.dash}"' if way.dash else ""
    return f'<path {line}{dash}{_dimmed(way.dim and not way.thick)} d="{_rounded(way.points)}"/>'


def _text(text: Text) -> str:
    look = ' font-size="10"' * text.small + ' font-weight="600"' * text.bold
    turn = f' transform="rotate(-90 {text.x} {text.y})"' if text.turned else ""
    return f'<text x="{text.x}" y="{text.y}"{_fill(text.color)}{look}{turn}>{escape(text.text)}</text>'


def _rounded(points: tuple[Point, ...], radius: int = 7) -> str:
    out = [f"M{points[0][0]} {points[0][1]}"]
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(at, before, radius), _towards(at, after, radius)
        out.append(f"L{near[0]} {near[1]}Q{at[0]} {at[1]} {far[0]} {far[1]}")
    return "".join([*out, f"L{points[-1][0]} {points[-1][1]}"])


def _towards(a: Point, b: Point, length: int) -> Point:
    """The point at ``length`` (at most half of the distance) from a towards b."""
    whole = max(abs(b[0] - a[0]) + abs(b[1] - a[1]), 1)
    step = min(length, whole // 2)
    return a[0] + (b[0] - a[0]) * step // whole, a[1] + (b[1] - a[1]) * step // whole
