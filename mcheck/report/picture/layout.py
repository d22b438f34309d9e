"""The layout of a picture in pixels. Deterministic: equal executions give equal pictures, byte for byte."""

from __future__ import annotations

import re
from dataclasses import field
from itertools import pairwise

from mcheck.base.records import dataclass
from mcheck.events.execution_graph import Band, Execution, label_of
from mcheck.report.picture.grid import Grid, place_boxes
from mcheck.report.picture.routes import Route, Routing, route

WIDE, NARROW = 7.4, 6.2
"""Width of a character in the two font sizes (monospaced, 12 and 10 pixels), rounded up."""
LINE, SMALL = 16, 13
PAD = 9
MAX_CHARACTERS = 38
MARGIN = 20
LANE = 15
SPARE = (0, 48, 96, 192)
"""The extra channel widths to try."""

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle with integer coordinates."""

    x: int
    y: int
    width: int
    height: int

    def overlaps(self, other: Rect) -> bool:
        """Whether the rectangles share more than an edge."""
        return (
            self.x < other.x + other.width
            and other.x < self.x + self.width
            and self.y < other.y + other.height
            and other.y < self.y + self.height
        )


@dataclass(frozen=True, slots=True)
class Label:
    """A text with its bounding rectangle."""

    rect: Rect
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """The polyline of an edge, with its label if it has one."""

    route: Route
    points: tuple[Point, ...]
    label: Label | None


@dataclass(frozen=True, slots=True)
class PlacedBand:
    """A phase of an mbarrier beside the rows of its operations."""

    band: Band
    rect: Rect
    label: Label


@dataclass(slots=True)
class Layout:
    """Everything to draw. ``texts`` are the lines in each box and ``instructions`` the small lines below
    them, ``heads`` the titles of the columns.
    """

    execution: Execution
    grid: Grid
    boxes: list[Rect] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    instructions: list[tuple[str, ...]] = field(default_factory=list)
    heads: list[Label] = field(default_factory=list)
    panels: list[Rect] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    bands: list[PlacedBand] = field(default_factory=list)
    caption: list[Label] = field(default_factory=list)
    legend: list[tuple[str, Label]] = field(default_factory=list)
    width: int = 0
    height: int = 0
    spare: int = 0
    """Pixels that each channel with lanes and straight edges has beyond its need."""
    crossed: int = 0
    """How many edges run through labels of others."""


def shorten(text: str, most: int = MAX_CHARACTERS) -> str:
    """Shorten a text to at most ``most`` characters, with an ellipsis in the middle."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (most - 1 - head) :]}"


def lay_out(execution: Execution) -> Layout:
    """Compute the layout of an execution."""
    grid = place_boxes(execution)
    routing = route(execution, grid)
    best: Layout | None = None
    for spare in SPARE:  # more room only if labels need it
        out = _laid_out(execution, grid, routing, spare)
        if best is None or out.crossed < best.crossed:
            best = out
        if not out.crossed:
            break
    assert best is not None
    return best


def _laid_out(execution: Execution, grid: Grid, routing: Routing, spare: int) -> Layout:
    out = Layout(execution, grid, spare=spare)
    out.texts = [_texts(execution, k) for k in range(len(execution.boxes))]
    out.instructions = [instruction_lines(box.text, MAX_CHARACTERS + 6) for box in execution.boxes]
    _caption(out)
    _boxes(out, routing)
    _lines(out, routing)
    _bands(out)
    _legend(out)
    return out


def _texts(execution: Execution, k: int) -> tuple[str, ...]:
    box = execution.boxes[k]
    first, *more = (shorten(line, MAX_CHARACTERS - 4) for line in box.lines)
    return (f"{box.name}: {first}", *(f"   {line}" for line in more))


def instruction_lines(text: str, most: int) -> tuple[str, ...]:
    """The instruction in lines of at most ``most`` characters, broken at blanks and at the dots of a long opcode."""
    lines = [""]
    for piece in re.findall(r"\S+?(?=\.[a-z_])|\S+|\s+", text):
        if len(lines[-1]) + len(piece) > most and lines[-1].strip():
            lines.append("  ")
        lines[-1] += piece if lines[-1].strip() else piece.lstrip()
    return tuple(line.rstrip() for line in lines)


def _size(texts: tuple[str, ...], instruction: tuple[str, ...]) -> tuple[int, int]:
    """Width and height of a box; the instruction is printed in the small size."""
    width = max(*(len(t) * WIDE for t in texts), *(len(t) * NARROW for t in instruction))
    return int(width) + 2 * PAD, LINE * len(texts) + SMALL * len(instruction) + 2 * PAD - 6


def wrap(text: str, most: int) -> list[str]:
    """Wrap a text at blanks to lines of at most ``most`` characters."""
    out = [""]
    for word in text.split(" "):
        if out[-1] and len(out[-1]) + 1 + len(word) > most:
            out.append("")
        out[-1] += f" {word}" if out[-1] else word
    return out


def _caption(out: Layout) -> None:
    """The title, and the axiom and cycle that forbid the execution."""
    e = out.execution
    values = " ".join(f"{label}={value};" for label, value in e.state)
    texts = wrap(f"{e.name} under {e.model}", 70) + (wrap(values, 70) if values else [])
    if e.axiom:
        texts += wrap(f"forbidden by {e.axiom}: {e.explanation(boxes=False)}".removesuffix(": "), 78)
    y = MARGIN
    for text in texts:
        out.caption.append(Label(Rect(MARGIN, y, int(len(text) * WIDE) + 1, LINE), text))
        y += LINE + 2


def _boxes(out: Layout, routing: Routing) -> None:
    grid = out.grid
    sizes = [_size(t, i) for t, i in zip(out.texts, out.instructions, strict=True)]
    columns = range(len(grid.columns))
    heads = [f"{c.title}" if c.asynchronous or not c.place else f"{c.title} ({c.place})" for c in grid.columns]
    widths = [
        max([60, int(len(heads[c]) * WIDE) + PAD] + [sizes[k][0] for k in range(len(sizes)) if grid.column[k] == c])
        for c in columns
    ]
    heights = [max([20] + [sizes[k][1] for k in range(len(sizes)) if grid.row[k] == r]) for r in range(grid.rows)]
    x = MARGIN + PAD
    left = []
    for c in columns:
        left.append(x)
        x += widths[c] + _channel(routing, c, out.spare)
    y = out.caption[-1].rect.y + LINE + MARGIN
    head_at = y
    y += LINE + _gap(routing, -1)
    top = []
    for r in range(grid.rows):
        top.append(y)
        y += heights[r] + _gap(routing, r)
    for k, (width, height) in enumerate(sizes):
        c, r = grid.column[k], grid.row[k]
        out.boxes.append(Rect(left[c] + (widths[c] - width) // 2, top[r] + (heights[r] - height) // 2, width, height))
    for c in columns:
        size = int(len(heads[c]) * WIDE)
        out.heads.append(Label(Rect(left[c] + (widths[c] - size) // 2, head_at, size, LINE), heads[c]))
        out.panels.append(Rect(left[c] - PAD, head_at - 6, widths[c] + 2 * PAD, y - head_at + 4))
    out.width = max(x, *(label.rect.x + label.rect.width for label in out.caption)) + MARGIN
    out.height = y + MARGIN


def _channel(routing: Routing, column: int, spare: int) -> int:
    """The width of the space right of a column."""
    lanes, crossed = routing.channels.count(column), routing.crossed.get(column, 0)
    return (spare if lanes and crossed else 0) + max(
        40,
        2 * PAD + (min(92 + 12 * (crossed - 1), 200) if crossed else 0),
        2 * PAD + 66 + LANE * (lanes - 1) if lanes else 0,
    )


def _gap(routing: Routing, row: int) -> int:
    """The height of the space below a row."""
    return 26 + LANE * routing.gaps.count(row)


# --- edges -------------------------------------------------------------------------------------------------


def _lines(out: Layout, routing: Routing) -> None:
    ports = _ports(out, routing)
    ways = [(r, _points(out, routing, r, ports)) for r in routing.routes]
    blocked = [*out.boxes, *(h.rect for h in out.heads), *(c.rect for c in out.caption)]
    placed: dict[int, Label] = {}
    by_freedom = sorted(range(len(ways)), key=lambda k: (not ways[k][0].edge.violated, _length(ways[k][1]), k))
    for k in by_freedom:
        r, points = ways[k]
        if r.edge.kind == "po" and not r.edge.violated:
            continue
        others = [s for j, (_, way) in enumerate(ways) if j != k for s in pairwise(way)]
        label, crossing = _label(label_of(r.edge.kind), points, blocked, others, beside=r.kind == "down")
        out.crossed += crossing
        blocked.append(label.rect)
        placed[k] = label
    out.lines = [Line(r, points, placed.get(k)) for k, (r, points) in enumerate(ways)]
    for label in placed.values():
        out.width = max(out.width, label.rect.x + label.rect.width + MARGIN)
        out.height = max(out.height, label.rect.y + label.rect.height + MARGIN)


def _length(points: tuple[Point, ...]) -> int:
    return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(points))


Ports = dict[tuple[int, int], int]


def _ports(out: Layout, routing: Routing) -> Ports:
    """The heights at which routes touch the sides of boxes, by (route, 0 for its start or 1 for its end)."""
    sides: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
    for k, r in enumerate(routing.routes):
        if r.kind == "down":
            continue
        ends = (r.edge.source, r.edge.target)
        for end in (0, 1):
            mine, other = ends[end], ends[1 - end]
            left = out.grid.column[other] < out.grid.column[mine]
            side = "left" if left and r.kind != "side" else "right"
            sides.setdefault((mine, side), []).append((out.boxes[other].y, k, end))
    found: Ports = {}
    for (box, _), users in sides.items():
        rect = out.boxes[box]
        for place_, (_, k, end) in enumerate(sorted(users), start=1):
            found[k, end] = rect.y + rect.height * place_ // (len(users) + 1)
    return found


def _points(out: Layout, routing: Routing, r: Route, ports: Ports) -> tuple[Point, ...]:
    a, b = out.boxes[r.edge.source], out.boxes[r.edge.target]
    if r.kind == "down":
        x = (max(a.x, b.x) + min(a.x + a.width, b.x + b.width)) // 2
        return ((x, a.y + a.height), (x, b.y)) if a.y < b.y else ((x, a.y), (x, b.y + b.height))
    k = routing.routes.index(r)
    start, end = ports[k, 0], ports[k, 1]
    if r.kind == "side":
        x = _lane_x(out, routing, r.first)
        return (a.x + a.width, start), (x, start), (x, end), (b.x + b.width, end)
    forward = out.grid.column[r.edge.source] < out.grid.column[r.edge.target]
    here = (a.x + a.width if forward else a.x, start)
    there = (b.x if forward else b.x + b.width, end)
    if r.kind == "straight":  # level inside its columns, to avoid wider boxes there
        sides = [
            out.panels[out.grid.column[box]].x + (out.panels[out.grid.column[box]].width - PAD if right else PAD)
            for box, right in ((r.edge.source, forward), (r.edge.target, not forward))
        ]
        way = (here, (sides[0], start), (sides[1], end), there)
        return tuple(p for k, p in enumerate(way) if k in (0, 3) or abs(p[0] - way[0 if k == 1 else 3][0]) > 2)
    x1, x2 = _lane_x(out, routing, r.first), _lane_x(out, routing, r.last)
    y = _lane_y(out, r.across)
    return here, (x1, start), (x1, y), (x2, y), (x2, end), there


def _lane_x(out: Layout, routing: Routing, at: tuple[int, int]) -> int:
    channel, lane = at
    right = max(
        (out.panels[channel].x + out.panels[channel].width),
        max((r.x + r.width for k, r in enumerate(out.boxes) if out.grid.column[k] == channel), default=0),
    )
    space = _channel(routing, channel, out.spare) - 2 * PAD
    lanes = routing.channels.count(channel)
    return right + (space - LANE * (lanes - 1)) // 2 + LANE * lane


def _lane_y(out: Layout, at: tuple[int, int]) -> int:
    gap, lane = at
    if gap < 0:
        return out.heads[0].rect.y + LINE + 13 + LANE * lane
    bottom = max(r.y + r.height for k, r in enumerate(out.boxes) if out.grid.row[k] == gap)
    return bottom + 13 + LANE * lane


ALONG = tuple(sorted(range(2, 39), key=lambda k: (abs(k - 20), k)))
"""Positions on a segment in 40ths, starting from the middle."""

NEAR = tuple((dx * d, dy * d) for d in (5, 9, 13) for dx, dy in ((0, -1), (0, 1), (1, 0), (-1, 0)))
"""The distances of a label from its line."""


def _label(
    text: str, points: tuple[Point, ...], blocked: list[Rect], others: list[tuple[Point, Point]], *, beside: bool
) -> tuple[Label, int]:
    """Place a label on its line or beside it, where it covers no text and the fewest other edges; otherwise as near as
    there is room. Also return the number of edges it covers.
    """
    width, height = int(len(text) * NARROW) + 7, SMALL + 1
    aside = width // 2 + 4 if beside else 0  # a label would hide a short line
    parts = sorted(pairwise(points), key=lambda p: -abs(p[0][0] - p[1][0]) - abs(p[0][1] - p[1][1]))
    spots = [
        Rect(ax + (bx - ax) * t // 40 + aside - width // 2, ay + (by - ay) * t // 40 - height // 2, width, height)
        for (ax, ay), (bx, by) in parts
        for t in ALONG
    ]
    around = _around(spots, 2 * SMALL)
    texts = [r for r in blocked if r.overlaps(around)]
    lines = [s for s in others if crosses(s, around)]
    best: tuple[int, Rect] | None = None
    for dx, dy in ((0, 0), *NEAR):
        for spot in spots:
            rect = Rect(spot.x + dx, spot.y + dy, width, height)
            if rect.x < 2 or rect.y < 2 or any(rect.overlaps(r) for r in texts):
                continue
            count = sum(crosses(s, rect) for s in lines)
            if not count:
                return Label(rect, text), 0
            if best is None or count < best[0]:
                best = count, rect
    if best is not None:
        return Label(best[1], text), best[0]
    for distance in range(14, 400):
        for spot in spots:
            for dx, dy in ((0, -4), (0, 4), (4, 0), (-4, 0)):
                rect = Rect(spot.x + dx * distance, spot.y + dy * distance, width, height)
                if rect.x >= 2 and rect.y >= 2 and not any(rect.overlaps(other) for other in blocked):
                    return Label(rect, text), sum(crosses(s, rect) for s in others)
    raise AssertionError("a label found no room on an unbounded sheet")


def _around(rects: list[Rect], margin: int) -> Rect:
    left, top = min(r.x for r in rects) - margin, min(r.y for r in rects) - margin
    right, bottom = max(r.x + r.width for r in rects) + margin, max(r.y + r.height for r in rects) + margin
    return Rect(left, top, right - left, bottom - top)


def crosses(segment: tuple[Point, Point], rect: Rect) -> bool:
    """Whether a segment crosses a rectangle."""
    (ax, ay), (bx, by) = segment
    left, right, top, bottom = rect.x, rect.x + rect.width, rect.y, rect.y + rect.height
    if max(ax, bx) <= left or min(ax, bx) >= right or max(ay, by) <= top or min(ay, by) >= bottom:
        return False
    sides = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x in (left, right) for y in (top, bottom)]
    return min(sides) < 0 < max(sides)


# --- phases and legend -------------------------------------------------------------------------------------


def _bands(out: Layout) -> None:
    """The phases of each mbarrier as bands right of the boxes, beside the rows of their operations."""
    if not out.execution.bands:
        return
    x = out.width
    last: str | None = None
    bottom = 0
    height = SMALL + 6
    for band in out.execution.bands:
        rects = [out.boxes[k] for k in band.boxes]
        top = min(r.y for r in rects)
        end = max(r.y + r.height for r in rects)
        text = f"phase {band.phase}"
        need = int(len(text) * NARROW) + 10
        if band.barrier != last:
            head = int(len(band.barrier) * WIDE)
            x += (0 if last is None else 34) + max(0, head - 30)
            if last is not None:  # names are above their bands and may be wider
                before = out.heads[-1].rect
                x = max(x, before.x + before.width + 10 + (head - height) // 2)
            out.heads.append(Label(Rect(x + height // 2 - head // 2, out.heads[0].rect.y, head, LINE), band.barrier))
            last, bottom = band.barrier, 0
        top = max(top, bottom + 4)
        rect = Rect(x, top, height, max(need, end - top))
        bottom = rect.y + rect.height
        out.bands.append(PlacedBand(band, rect, Label(Rect(x, rect.y + (rect.height - need) // 2, height, need), text)))
        out.height = max(out.height, bottom + MARGIN)
    heads = max(h.rect.x + h.rect.width for h in out.heads)
    out.width = max(x + height, heads) + MARGIN


def _legend(out: Layout) -> None:
    """The meaning of the kinds of edges, one line each."""
    from mcheck.events.execution_graph import DRAWN

    kinds = list(dict.fromkeys(line.route.edge.kind for line in out.lines))
    y = out.height
    for kind in sorted(kinds, key=lambda k: (list(DRAWN).index(k) if k in DRAWN else len(DRAWN), k)):
        text = f"{label_of(kind)}: {MEANINGS.get(kind) or DRAWN.get(kind) or 'relation of the model'}"
        out.legend.append((kind, Label(Rect(MARGIN + 44, y, int(len(text) * NARROW) + 1, SMALL), text)))
        y += SMALL + 4
        out.width = max(out.width, MARGIN + 44 + int(len(text) * NARROW) + MARGIN)
    out.height = y + MARGIN // 2


MEANINGS = {
    "data": "data dependency; a copy writes what it read",
    "rmw": "the read and the write of an atomic",
    "addr": "address dependency",
    "ctrl": "control dependency",
    "phase-order": "order of the operations on one mbarrier",
    "phase-fr": "a wait and what ends the phase that it found",
    "same-access": "parts of one access",
}
