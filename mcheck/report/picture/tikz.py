"""Executions as a ``tikzpicture``, for ``\\input`` in a paper.

Texts use the monospaced font of the paper. A pixel is 1/96 inch; ``\\resizebox`` fits it to a column.
"""

from __future__ import annotations

from mcheck.events.execution_graph import Execution
from mcheck.report.formats.latex import latex
from mcheck.report.picture.layout import Point, lay_out
from mcheck.report.picture.shapes import LIGHT, THICK, THIN, Frame, Group, Head, Shape, Text, Way, shapes

PIXEL = 0.75
"""TeX's big points (1/72 inch) per pixel."""


def tikz(execution: Execution) -> str:
    """The picture; needs only the package tikz (and the encoding T1 for some quotes in texts)."""
    layout = lay_out(execution)
    drawn = shapes(layout)
    lines = [
        f"% {_comment(execution.title)}",
        r"% \usepackage[T1]{fontenc} \usepackage{tikz}",
        *(rf"\definecolor{{mc-{name}}}{{HTML}}{{{LIGHT[name][1:].upper()}}}" for name in sorted(_colors(drawn))),
        rf"\begin{{tikzpicture}}[x={PIXEL}bp, y=-{PIXEL}bp, inner sep=0pt, outer sep=0pt,",
        r"  mc/.style={anchor=base west, font=\ttfamily\fontsize{8.5}{9}\selectfont},",
        r"  mcs/.style={anchor=base west, font=\ttfamily\fontsize{7}{8}\selectfont}]",
        rf"\useasboundingbox (0,0) rectangle ({layout.width},{layout.height});",
    ]
    for shape in drawn:
        lines += _shape(shape)
    return "\n".join([*lines, r"\end{tikzpicture}"]) + "\n"


def _comment(text: str) -> str:
    return " ".join(text.split())


def _colors(drawn: list[Shape]) -> set[str]:
    found: set[str] = set()
    for shape in drawn:
        match shape:
            case Group(parts=parts):
                found |= _colors(list(parts))
            case Frame():
                found |= {shape.fill, *([shape.stroke] if shape.stroke else [])}
            case _:
                found.add(shape.color)
    return found


def _shape(shape: Shape) -> list[str]:
    match shape:
        case Group(parts=parts):
            return [line for part in parts for line in _shape(part)]
        case Frame(rect=rect):
            options = [f"fill=mc-{shape.fill}", f"rounded corners={shape.radius * PIXEL:g}bp"]
            if shape.stroke:
                options += [f"draw=mc-{shape.stroke}", f"line width={float(shape.weight) * PIXEL:g}bp"]
            options += _dashes(shape.dash)
            corner = f"({rect.x + rect.width},{rect.y + rect.height})"
            return [rf"\path[{', '.join(options)}] ({rect.x},{rect.y}) rectangle {corner};"]
        case Way(points=points):
            width = (THICK if shape.thick else THIN) * PIXEL
            options = [f"mc-{shape.color}", f"line width={width:g}bp", f"rounded corners={7 * PIXEL:g}bp"]
            options += _dashes(shape.dash) + ["opacity=.5"] * shape.dim
            return [rf"\draw[{', '.join(options)}] {' -- '.join(map(_point, _distinct(points)))};"]
        case Head(corners=corners):
            options = [f"mc-{shape.color}", *["opacity=.5"] * shape.dim]
            ends = " -- ".join(f"({x:.1f},{y:.1f})" for x, y in corners)
            return [rf"\fill[{', '.join(options)}] {ends} -- cycle;"]
        case Text():
            style = "mcs" if shape.small else "mc"
            turn = ", rotate=90" if shape.turned else ""
            bold = r"\bfseries " if shape.bold else ""
            told = latex(shape.text, blanks=True)
            return [rf"\node[{style}, text=mc-{shape.color}{turn}] at ({shape.x},{shape.y}) {{{bold}{told}}};"]


def _dashes(lengths: str) -> list[str]:
    """A dash pattern ``on 6 off 4 …`` in pixels."""
    parts = [f"{'off' if k % 2 else 'on'} {int(n) * PIXEL:g}bp" for k, n in enumerate(lengths.split())]
    return [f"dash pattern={' '.join(parts)}"] if parts else []


def _point(point: Point) -> str:
    return f"({point[0]},{point[1]})"


def _distinct(points: tuple[Point, ...]) -> list[Point]:
    """The points without repetitions, at which corners could not be rounded."""
    return [p for k, p in enumerate(points) if k == 0 or p != points[k - 1]]
