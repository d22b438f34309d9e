"""Executions as PDF, by reportlab. Texts are in Courier, a standard font that need not be embedded."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from mcheck.base.errors import InputError
from mcheck.report.picture.layout import Point, lay_out
from mcheck.report.picture.shapes import LIGHT, THICK, THIN, Frame, Group, Head, Shape, Text, Way, shapes

if TYPE_CHECKING:
    from mcheck.events.execution_graph import Execution

PIXEL = 0.75
"""Points per pixel."""
CORNER = 7


def pdf(execution: Execution) -> bytes:
    """The picture on a page of its size; deterministic.

    Raises:
        InputError: reportlab is not installed.
    """
    try:
        from reportlab.pdfgen.canvas import Canvas
    except ImportError:
        raise InputError("reportlab is not installed", hint="pip install '.[pdf]' in a checkout of mcheck") from None
    layout = lay_out(execution)
    out = BytesIO()
    canvas = Canvas(out, pagesize=(layout.width * PIXEL, layout.height * PIXEL), invariant=1)
    canvas.setTitle(execution.title)
    canvas.setCreator("mcheck")
    canvas.transform(PIXEL, 0, 0, -PIXEL, 0, layout.height * PIXEL)  # pixels, downwards
    for shape in shapes(layout):
        _draw(canvas, shape)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def _draw(canvas: Any, shape: Shape) -> None:
    match shape:
        case Group(parts=parts):
            for part in parts:
                _draw(canvas, part)
        case Frame(rect=rect):
            canvas.setFillColor(LIGHT[shape.fill])
            canvas.setDash(*_dashes(shape.dash))
            if shape.stroke:
                canvas.setStrokeColor(LIGHT[shape.stroke])
                canvas.setLineWidth(float(shape.weight))
            radius = min(shape.radius, rect.width // 2, rect.height // 2)
            canvas.roundRect(rect.x, rect.y, rect.width, rect.height, radius, stroke=int(bool(shape.stroke)), fill=1)
        case Way():
            canvas.setStrokeColor(LIGHT[shape.color], alpha=0.5 if shape.dim else 1)
            canvas.setLineWidth(THICK if shape.thick else THIN)
            canvas.setDash(*_dashes(shape.dash))
            canvas.drawPath(_rounded(canvas.beginPath(), shape.points), stroke=1, fill=0)
            canvas.setStrokeAlpha(1)
        case Head(corners=corners):
            path = canvas.beginPath()
            path.moveTo(*corners[0])
            for corner in corners[1:]:
                path.lineTo(*corner)
            path.close()
            canvas.setFillColor(LIGHT[shape.color], alpha=0.5 if shape.dim else 1)
            canvas.drawPath(path, stroke=0, fill=1)
            canvas.setFillAlpha(1)
        case Text():
            canvas.saveState()
            canvas.translate(shape.x, shape.y)
            canvas.scale(1, -1)
            if shape.turned:
                canvas.rotate(90)
            canvas.setFillColor(LIGHT[shape.color])
            canvas.setFont("Courier-Bold" if shape.bold else "Courier", 10 if shape.small else 12)
            canvas.drawString(0, 0, shape.text)
            canvas.restoreState()


def _dashes(lengths: str) -> tuple[list[int], int]:
    return [int(n) for n in lengths.split()], 0


def _rounded(path: Any, points: tuple[Point, ...]) -> Any:
    """Add the line to the path with rounded corners."""
    path.moveTo(*points[0])
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        (nx, ny), (fx, fy) = _towards(at, before), _towards(at, after)
        path.lineTo(nx, ny)
        # the cubic that equals the quadratic with the corner as control point
        path.curveTo(*_third(nx, ny, *at), *_third(fx, fy, *at), fx, fy)
    path.lineTo(*points[-1])
    return path


def _towards(a: Point, b: Point) -> tuple[float, float]:
    whole = max(abs(b[0] - a[0]) + abs(b[1] - a[1]), 1)
    step = min(CORNER, whole / 2)
    return a[0] + (b[0] - a[0]) * step / whole, a[1] + (b[1] - a[1]) * step / whole


def _third(x: float, y: float, cx: float, cy: float) -> tuple[float, float]:
    return x + (cx - x) * 2 / 3, y + (cy - y) * 2 / 3
