"""The grid of a picture: rows and columns of boxes, before sizes are known.

Time runs downwards: a box is below its predecessors in the thread and not above what it reads or waits for, unless that
is contradictory (as in a forbidden execution). Arrivals of threads at the same barrier are in one row.
"""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.events.execution_graph import Column, Edge, Execution

DOWN = ("po", "issue", "data", "complete", "barrier", "phase", "rf", "sync_fence", "co", "fr")
"""Kinds of edges that point downwards, by priority."""


@dataclass(frozen=True, slots=True)
class Grid:
    """``row`` and ``column`` of every box; operations that never overlap share one of the ``columns``."""

    row: tuple[int, ...]
    column: tuple[int, ...]
    columns: tuple[Column, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return max(self.row, default=-1) + 1


def place_boxes(execution: Execution) -> Grid:
    """Compute the grid of an execution."""
    row = [box.row for box in execution.boxes]
    if any(r < 0 for r in row):
        row = _rows(execution)
    column, columns = _packed(execution, row)
    return Grid(tuple(row), tuple(column), columns)


def _rows(execution: Execution) -> list[int]:
    n = len(execution.boxes)
    team = list(range(n))  # boxes in one row, by their smallest member

    def root(k: int) -> int:
        while team[k] != k:
            k = team[k]
        return k

    after: list[dict[int, int]] = [{} for _ in range(n)]

    def reaches(a: int, b: int) -> bool:
        todo, seen = [a], {a}
        while todo:
            k = todo.pop()
            if k == b:
                return True
            for x in after[k]:
                if root(x) not in seen:
                    seen.add(root(x))
                    todo.append(root(x))
        return False

    def below(edge: Edge, gap: int) -> None:
        a, b = root(edge.source), root(edge.target)
        if a != b and not reaches(b, a):
            after[a][b] = max(after[a].get(b, 0), gap)

    ranked = sorted(
        (e for e in execution.edges if e.kind in DOWN),
        key=lambda e: (DOWN.index(e.kind), e.violated, e.source, e.target),
    )
    for edge in ranked:
        if edge.kind in ("po", "data") or (edge.kind == "complete" and _one_column(execution, edge)):
            below(edge, 1)
    for edge in ranked:
        if edge.both:
            a, b = sorted((root(edge.source), root(edge.target)))
            if a != b and not reaches(a, b) and not reaches(b, a):
                team[b] = a
                for x, gap in after[b].items():
                    after[a][x] = max(after[a].get(x, 0), gap)
                after[b] = {}
                for k in range(n):
                    if b in after[k]:
                        after[k][a] = max(after[k].get(a, 0), after[k].pop(b))
    for edge in ranked:
        if not edge.both:
            below(edge, 1 if _one_column(execution, edge) else 0)
    rows = [0] * n
    for _ in range(n):  # longest paths; n rounds suffice without cycles
        changed = False
        for a in range(n):
            for b, gap in after[a].items():
                if rows[root(b)] < rows[a] + gap:
                    rows[root(b)] = rows[a] + gap
                    changed = True
        if not changed:
            break
    return _apart(execution, [rows[root(k)] for k in range(n)])


def _one_column(execution: Execution, edge: Edge) -> bool:
    return execution.boxes[edge.source].column == execution.boxes[edge.target].column


def _apart(execution: Execution, rows: list[int]) -> list[int]:
    """Rows in which no two boxes of a column collide."""
    while True:
        taken: dict[tuple[int, int], int] = {}
        clash = None
        for k, box in enumerate(execution.boxes):
            at = (box.column, rows[k])
            if at in taken:
                clash = (taken[at], k)
                break
            taken[at] = k
        if clash is None:
            return rows
        _, second = clash
        limit = rows[second]
        column = execution.boxes[second].column
        for k, box in enumerate(execution.boxes):
            if box.column == column and k >= second and rows[k] >= limit:
                rows[k] += 1


def _packed(execution: Execution, row: list[int]) -> tuple[list[int], tuple[Column, ...]]:
    """Columns in which asynchronous operations of one thread are merged if their rows do not overlap."""
    members: dict[int, list[int]] = {}
    for k, box in enumerate(execution.boxes):
        members.setdefault(box.column, []).append(k)
    new: dict[int, int] = {}
    columns: list[Column] = []
    free: dict[int, list[tuple[int, int]]] = {}  # thread -> (new column, its last row)
    for old, column in enumerate(execution.columns):
        if old not in members:
            continue
        rows = [row[k] for k in members[old]]
        if column.asynchronous:
            shared = free.setdefault(column.thread, [])
            for at, (c, last) in enumerate(shared):
                if last + 1 < min(rows):
                    shared[at] = (c, max(rows))
                    new[old] = c
                    break
            else:
                shared.append((len(columns), max(rows)))
        if old not in new:
            new[old] = len(columns)
            columns.append(column)
    return [new[box.column] for box in execution.boxes], tuple(columns)
