"""Edits of a program: statements inserted or replaced in all threads and iterations, as an edit of the source would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.ops import AssumedValue, Await, Op
from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True)
class Insertion:
    """Insertion of ``op`` right before the statement at ``span``, or right ``after`` it, with its guard."""

    op: Op
    after: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replacement of the statement at ``span`` by the result of ``change``."""

    change: Callable[[Op], Op]
    span: Span


Amendment = Insertion | Replacement


def apply_amendments(program: Program, amendments: Sequence[Amendment]) -> Program:
    """The program with all of these edits; parametric loops keep the iterations of this instance."""
    if not amendments:
        return program
    made: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[tuple[Op, ...], dict[str, int]]] = {}
    shared: dict[tuple[int, int], Op] = {}
    threads = []
    for thread in program.threads:
        key = id(thread.code), tuple(thread.labels.items())
        if key not in made:
            made[key] = _code(thread.code, thread.labels, amendments, shared)
        code, labels = made[key]
        threads.append(replace(thread, code=code, labels=labels, iterations=None, rounds={}))
    return replace(
        program, threads=tuple(threads), parameter=None, instance=None, rounds=None, early_rounds=None, family=None,
        shortened=None,
    )  # fmt: skip


def _code(
    code: tuple[Op, ...], labels: dict[str, int], amendments: Sequence[Amendment], shared: dict[tuple[int, int], Op]
) -> tuple[tuple[Op, ...], dict[str, int]]:
    """The edited code; threads that share an operation share the edited one (``shared``)."""
    out: list[Op] = []
    places: list[int] = []
    """The new positions of the operations, insertions before them included."""
    for op in code:
        is_statement = op.span is not None and not isinstance(op, AssumedValue)  # that has the place of what it follows
        mine = [(k, a) for k, a in enumerate(amendments) if is_statement and a.span == op.span]
        places.append(len(out))
        out += [_beside(k, a, op, shared) for k, a in mine if isinstance(a, Insertion) and not a.after]
        out.append(_changed([(k, a) for k, a in mine if isinstance(a, Replacement)], op, shared))
        out += [_beside(k, a, op, shared) for k, a in mine if isinstance(a, Insertion) and a.after]
    places.append(len(out))
    return tuple(out), {name: places[at] for name, at in labels.items()}


def _beside(k: int, inserted: Insertion, op: Op, shared: dict[tuple[int, int], Op]) -> Op:
    key = k, id(op)
    if key not in shared:
        shared[key] = replace(inserted.op, guard=op.guard)
    return shared[key]


def _changed(changes: list[tuple[int, Replacement]], op: Op, shared: dict[tuple[int, int], Op]) -> Op:
    out = op
    for k, change in changes:
        key = k, id(op)
        if key not in shared:
            shared[key] = replace(out, inner=change.change(out.inner)) if isinstance(out, Await) else change.change(out)
        out = shared[key]
    return out
